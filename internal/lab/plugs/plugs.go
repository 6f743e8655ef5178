// Package plugs has the list of the points in which a plug can keep the contract of mortise and
// break that of its host, the project that calls it. The test of each module below adapters names,
// for each point, the tests that hold it, or the reason why the point does not apply.
//
// Guarantees: a point without an answer, an unknown point, and a test that does not exist fail.
// Concurrency: plain values. Failure: none. Limits: the check does not know what a test tests.
// Refused alternative: one suite for all plugs. Each host has its own calls and its own words.
package plugs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Point is a situation of the host.
type Point string

// The points.
const (
	// Loss: the lock is lost, and the host goes on to retry its work under it.
	Loss Point = "a loss in the middle of the host's own retries"
	// Sentinels: code for the host compares its errors with the operator ==.
	Sentinels Point = "the host's errors, compared with =="
	// GivenUp: the host no longer waits for a call that may still get the lock.
	GivenUp Point = "a caller that has given up"
	// Unscheduled: the work is started once more, beside its schedule or its usual occasion.
	Unscheduled Point = "a second run outside of the schedule"
	// SameName: two jobs, candidates or uploads of one process have the same name.
	SameName Point = "two jobs of one name"
	// Replaced: the session of the host or of the node has ended, and the host makes a new one.
	Replaced Point = "a session that ended is replaced"
	// Restarted: a process is started again under the identity of one whose lock is still taken.
	Restarted Point = "a restarted process with its old identity"
	// Words: an error names the operation, the key and the cause once, as the host calls them.
	Words Point = "one sentence in the host's words"
)

func points() []Point {
	return []Point{Loss, Sentinels, GivenUp, Unscheduled, SameName, Replaced, Restarted, Words}
}

// None begins the answer of a point that does not apply. The reason follows.
const None = "does not apply: "

// Answers has the answer to each point: the names of tests, separated by spaces, each with the
// directory of its package if that is not the module's ("redsync.TestSentinels"), or None and a
// reason.
type Answers map[Point]string

// Check fails for each point that has no valid answer. dir is the directory of the module.
func (a Answers) Check(t *testing.T, dir string) {
	t.Helper()
	tests, err := testsIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range a.faults(tests) {
		t.Error(fault)
	}
}

func (a Answers) faults(tests map[string]bool) (faults []string) {
	for _, p := range points() {
		answer, is := a[p]
		reason, none := strings.CutPrefix(answer, None)
		switch {
		case !is:
			faults = append(faults, fmt.Sprintf("no answer to %q: name its tests, or the reason why it does not apply", p))
		case none && len(strings.Fields(reason)) < 3:
			faults = append(faults, fmt.Sprintf("%q does not apply, without a reason", p))
		case !none:
			faults = append(faults, missing(p, answer, tests)...)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(points(), p) {
			faults = append(faults, fmt.Sprintf("%q is no point of the list", p))
		}
	}
	return faults
}

func missing(p Point, answer string, tests map[string]bool) (faults []string) {
	names := strings.Fields(answer)
	if len(names) == 0 {
		return []string{fmt.Sprintf("the answer to %q names no test", p)}
	}
	for _, name := range names {
		if !tests[name] {
			faults = append(faults, fmt.Sprintf("the answer to %q names %s, which is no test of this module", p, name))
		}
	}
	return faults
}

// testsIn returns the names of the test functions in dir and in its direct folders.
func testsIn(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	below, err := filepath.Glob(filepath.Join(dir, "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	tests, isTest := map[string]bool{}, regexp.MustCompile(`^Test[^a-z]`)
	for _, file := range append(files, below...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		within, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && isTest.MatchString(f.Name.Name) {
				tests[strings.TrimPrefix(filepath.ToSlash(within)+".", "..")+f.Name.Name] = true
			}
		}
	}
	return tests, nil
}
