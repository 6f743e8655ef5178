package limits

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInputsAreFound checks the search on a module with each form of an input.
func TestInputsAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"m.go": `package m
import "time"
type Options struct { Wait time.Duration; Most int; Dir string; Name string; In Inner; hidden time.Duration }
type Inner struct { Pauses []time.Duration; Pause func(int) time.Duration }
type Status struct { Age time.Duration }
func (Status) String() string { return "" }
type Handler struct { MaxWait *time.Duration }
func (*Handler) Serve() {}
type Fault struct { After time.Duration }
func (*Fault) Error() string { return "" }
type Hooks struct { Seen func(time.Duration) }
type Given interface { Do(d time.Duration) }
func New(o *Options, h Hooks, n uint32, names map[string]int) Status { return Status{} }
func Open(path string, ttl ...time.Duration) {}
func inner(d time.Duration) {}
`,
		"sub/sub.go":        "package sub\nimport \"time\"\nfunc Wait(d time.Duration) {}\n",
		"internal/x/x.go":   "package x\nimport \"time\"\nfunc Wait(d time.Duration) {}\n",
		"lockfsm/l.go":      "package lockfsm\nfunc Wait(n int) {}\n",
		"tool/main.go":      "package main\nfunc main() {}\nfunc Wait(n int) {}\n",
		"sub/sub_test.go":   "package sub\nfunc Test(n int) {}\n",
		"sub/deep/deep.go":  "package deep\ntype T int\nfunc (T) At(i int) {}\n",
		"sub/deep/other.go": "package deep\nfunc Token(t T) {}\n",
	} {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := inputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]kind{
		"Options.Wait": duration, "Options.Most": count, "Options.Dir": path, "Inner.Pauses": duration,
		"Inner.Pause()": duration, "Handler.MaxWait": duration, "New(n)": count, "New(names)": count,
		"Open(path)": path, "Open(ttl)": duration, "sub.Wait(d)": duration, "sub/deep.T.At(i)": count,
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if want[name] != found[name] {
			t.Errorf("%s is found as a %s", name, found[name])
		}
	}
	for name, k := range want {
		if found[name] != k {
			t.Errorf("%s, a %s, is not found", name, k)
		}
	}
}

func TestAnInputWithoutATrialFails(t *testing.T) {
	found := map[string]kind{"A": duration, "B": count, "C": path, "D": count}
	trials := Trials{
		Counts: map[string]Count{"A": {}, "E": {}}, Exempt: map[string]string{"D": "", "F": ""},
	}
	got := strings.Join(trials.faults(found), "\n")
	want := strings.Join([]string{"A is a duration, and has a trial of a count",
		"B is a count without a trial: add one to the trials of its module",
		"C is a path without a trial: add one to the trials of its module",
		"E has a trial and is no input", "F has a trial and is no input"}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
