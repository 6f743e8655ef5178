// Package limits tries every duration, path and count that the exported API of a module takes: each
// duration with the largest value, a year and 30 days, each path with a change of the working
// directory, and each count with its limit, one less and one more. It finds the fields and
// parameters in the types of the packages, so an input without a trial fails the test.
//
// For the tests of other packages it has contracts: [GivenBack] of whatever has a limit, [AtMost],
// [AtLeast] and [Below] of its boundary, [CutTexts] of texts that are cut, and [PassesErrors] of
// decorators.
//
// Guarantees: a duration is found by its type; a count is found if its type is an integer that the
// language declares; a path is found by its type string and its name, such as Dir or CertFile.
// Fields of structs count if a program makes values of the struct: it is the type of a parameter or
// of a field of such a struct, or it has methods and no function returns it. Concurrency: the
// trials run one after the other. Failure: a failed trial fails its subtest. Limits: inputs of
// interfaces that the program implements, and results that it gets, are not tried. Only tests
// import this package. Refused alternative: a list of inputs by hand, which a new field would not
// be in.
package limits

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// long returns the durations with which every duration is tried.
func long() []time.Duration {
	return []time.Duration{math.MaxInt64, 365 * 24 * time.Hour, 30 * 24 * time.Hour}
}

// Count is the trial of a count.
type Count struct {
	Limit int64
	Step  int64 // from the limit down to the next number that is accepted; 0 means 1
	// Try uses the API with n. It returns nil if n was accepted and had its effect.
	Try func(t *testing.T, n int64) error
	// Names is the part of the error for a higher count that names the input. It is empty if the
	// limit is math.MaxInt64.
	Names string
}

// Trials are the trials of a module, by the names of its inputs: "tick.Job.Late" for a field of
// package tick, "IDs(count)" for a parameter of a function of the root package of the module.
type Trials struct {
	// A trial of a duration fails if d is accepted and has not the effect that it describes, or is
	// refused without a clear error; see Refused.
	Durations map[string]func(t *testing.T, d time.Duration)

	Counts map[string]Count

	// A trial of a path runs in an empty working directory. It uses a relative path, calls leave,
	// which changes the working directory, and uses what it has made.
	Paths map[string]func(t *testing.T, leave func())

	// Exempt contains inputs that are neither a duration, a path or a count, or cannot be tried,
	// with the reason.
	Exempt map[string]string
}

// Run tries all inputs of the module in dir.
func (all Trials) Run(t *testing.T, dir string) {
	found, err := inputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range all.faults(found) {
		t.Error(fault)
	}
	for _, name := range slices.Sorted(maps.Keys(all.Durations)) {
		for _, d := range long() {
			t.Run(fmt.Sprint(name, "/", d), func(t *testing.T) { all.Durations[name](t, d) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all.Counts)) {
		t.Run(name, func(t *testing.T) { all.Counts[name].run(t) })
	}
	for _, name := range slices.Sorted(maps.Keys(all.Paths)) {
		t.Run(name, func(t *testing.T) {
			elsewhere := t.TempDir()
			t.Chdir(t.TempDir())
			all.Paths[name](t, func() {
				if err := os.Chdir(elsewhere); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// faults returns the inputs without a trial and the trials without an input.
func (all Trials) faults(found map[string]kind) (faults []string) {
	tried := map[string]kind{}
	add := func(name string, k kind) {
		if tried[name] != "" {
			faults = append(faults, name+" is listed twice")
		}
		tried[name] = k
	}
	for name := range all.Durations {
		add(name, duration)
	}
	for name := range all.Counts {
		add(name, count)
	}
	for name := range all.Paths {
		add(name, path)
	}
	for name := range all.Exempt {
		add(name, found[name])
	}
	for name, k := range found {
		switch tried[name] {
		case k:
		case "":
			faults = append(faults, fmt.Sprintf("%s is a %s without a trial: add one to the trials of its module", name, k))
		default:
			faults = append(faults, fmt.Sprintf("%s is a %s, and has a trial of a %s", name, k, tried[name]))
		}
	}
	for name := range tried {
		if found[name] == "" {
			faults = append(faults, name+" has a trial and is no input")
		}
	}
	slices.Sort(faults)
	return faults
}

func (c Count) run(t *testing.T) {
	if err := c.Try(t, c.Limit); err != nil {
		t.Errorf("the limit, %d, is refused: %v", c.Limit, err)
	}
	if c.Limit == math.MaxInt64 {
		return
	}
	if err := c.Try(t, c.Limit-max(c.Step, 1)); err != nil {
		t.Errorf("the next number below the limit, %d, is refused: %v", c.Limit, err)
	}
	for _, n := range []int64{c.Limit + 1, math.MaxInt64} {
		Refused(t, c.Try(t, n), c.Names)
	}
}

// Refused checks that err is an error that names the input. name must not be empty.
func Refused(t *testing.T, err error, name string) {
	t.Helper()
	if err == nil || name == "" || !strings.Contains(err.Error(), name) {
		t.Errorf("want an error that names %q, got %v", name, err)
	}
}
