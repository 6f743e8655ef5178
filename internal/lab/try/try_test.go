package try

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/sim"
)

// TestAnAddressIsOneRun checks that a run depends on its address only: how often time passes in
// between, and how often the state is looked at, does not change it.
func TestAnAddressIsOneRun(t *testing.T) {
	a, err := Parse("seed=7&do=3000p2,24000k1,25000s1,31000c0,32500d1,40000c0&end=45000")
	if err != nil {
		t.Fatal(err)
	}
	lines, last := Replay(a)
	s := Begin(a.Seed)
	var stepped []sim.Line
	for at := time.Duration(0); at <= a.End; at += 7 * time.Millisecond {
		for len(a.Acts) > 0 && a.Acts[0].At <= at {
			s.Pass(a.Acts[0].At)
			s.Do(a.Acts[0].Act, a.Acts[0].Machine)
			a.Acts = a.Acts[1:]
		}
		s.Pass(at)
		if v := s.View(); len(v.Machines) != sim.ShowMachines || v.Broken != "" {
			t.Fatalf("%+v", v)
		}
		stepped = append(stepped, s.Lines()...)
	}
	s.Pass(a.End)
	stepped = append(stepped, s.Lines()...)
	if got := s.End(); got != last || len(stepped) != len(lines) {
		t.Errorf("with small steps, %d lines and\n%s\nwith few, %d lines and\n%s", len(stepped), got, len(lines), last)
	}
}

// TestAShowShowsWhatMatters looks for each kind of line, and for what the judges say, in runs with
// many acts.
func TestAShowShowsWhatMatters(t *testing.T) {
	found := map[string]bool{}
	for seed := range uint64(8) {
		a := Address{Seed: seed, End: 2 * time.Minute}
		for i, act := range "pppkscpdckscdpksksp" {
			a.Acts = append(a.Acts, Act{At: time.Duration(i+1) * 6100 * time.Millisecond, Act: sim.Act(act),
				Machine: (i/3 + int(seed)) % sim.ShowMachines})
		}
		lines, last := Replay(a)
		if !strings.Contains(last, "no rule was broken") {
			t.Errorf("%v: %s", a, last)
		}
		for _, l := range lines {
			if found[l.Kind] = true; strings.Contains(l.Text, "  ") || l.Machine == "" {
				t.Errorf("%v: %+v", a, l)
			}
		}
	}
	for _, kind := range []string{"act", "leads", "grant", "unlock", "lost", "ended", "refused"} {
		if !found[kind] {
			t.Errorf("no line of the kind %s", kind)
		}
	}
}

// TestWhyALockIsTaken checks what is said of the end of a hold, in the first of twenty runs in
// which n1 holds the lock when it is struck.
func TestWhyALockIsTaken(t *testing.T) {
	ended := func(acts string, seed int) (said string) {
		a, err := Parse(fmt.Sprintf("seed=%d&do=%s&end=30000", seed, acts))
		if err != nil {
			t.Fatal(err)
		}
		lines, _ := Replay(a)
		for _, l := range lines {
			if l.Kind == "ended" {
				said = l.Text
			}
		}
		return said
	}
	for acts, want := range map[string]string{
		"22000p1":         "its lease has run out",
		"22000k1":         "its lease has run out",
		"22000k1,22100s1": "its node has ended, as start 2 with its directory shows",
	} {
		said := ""
		for seed := 1; said == "" && seed <= 20; seed++ {
			said = ended(acts, seed)
		}
		if said != "the leader takes the lock from n1: "+want {
			t.Errorf("%s: %q, want %q", acts, said, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"seed=1":                   "",
		"#seed=7&do=1k0,1s0&end=2": "",
		"seed=9223372036854775807": "",
		"":                         "seed is a number",
		"seed=-1":                  "seed is a number",
		"seed=9223372036854775808": "seed is a number",
		"seed=%zz":                 "address",
		"seed=1&do=k0":             "an act is",
		"seed=1&do=5x0":            "an act is",
		"seed=1&do=5k3":            "an act is",
		"seed=1&do=5k/":            "an act is",
		"seed=1&do=-5k1":           "milliseconds",
		"seed=1&do=3600001k1":      "milliseconds",
		"seed=1&do=2k0,1s0":        "comes before",
		"seed=1&do=2k0&end=1":      "after the end",
		"seed=1&end=x":             "end: ",
		"seed=1&do=" + strings.Repeat("1k0,", MaxActs) + "1k0": "at most",
	} {
		a, err := Parse(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want == "" && a.String() != strings.TrimPrefix(text, "#"):
			t.Errorf("%q became %v", text, a)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}
