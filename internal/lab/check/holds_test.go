package check

import (
	"testing"
	"time"
)

func TestForced(t *testing.T) {
	x, both := []string{"x"}, []string{"x", "y"}
	var j Forced
	j.Asked("y", 7)
	wantFine(t, j.Told(both, 7), j.Ended(both, 7), j.Told(both, 7)) // Told before and after Ended
	if !j.Over(7) || j.Over(8) {
		t.Fatal("Over is wrong")
	}
	j.Asked("x", 8)
	wantFine(t, j.Ended(x, 8))
	wantBroken(t, j.Ended(x, 9), &j, "forced") // the token of a later hold of the key
	j = Forced{}
	j.Asked("x", 7)
	wantBroken(t, j.Ended([]string{"z"}, 7), &j, "forced") // the order named another key
	j = Forced{}
	wantBroken(t, j.Told(x, 7), &j, "forced")
}

func TestDelays(t *testing.T) {
	const s = time.Second
	j := Delays{Drift: 0.01}
	j.Expired(1, 10*s)
	j.Expired(1, 40*s) // a second call, when the delay has passed
	wantFine(t, j.Ended(1, "x", 7, 30*s, 40*s), j.Ended(1, "y", 7, 0, 10*s))
	j.Expired(2, 100*s)
	wantFine(t, j.Ended(2, "x", 8, 10*s, 100*s+9902*time.Millisecond)) // measured by a fast clock
	wantBroken(t, j.Ended(2, "x", 8, 10*s, 100*s+9900*time.Millisecond), &j, "delays")
	j = Delays{}
	wantBroken(t, j.Ended(1, "x", 7, s, 100*s), &j, "delays") // the session has not expired
}

func TestNotices(t *testing.T) {
	const s = time.Second
	var j Notices
	wantFine(t, j.Renewed(a, 5*s)) // no request waits
	j.Wanted(a, 6*s)
	j.Wanted(b, 6*s)
	j.Over(b)
	wantFine(t, j.Renewed(a, 6*s), j.Renewed(b, 7*s))
	j.Wanted(a, 9*s) // a second waiter
	wantBroken(t, j.Renewed(a, 7*s), &j, "notices")
}

func TestLongest(t *testing.T) {
	const s = time.Second
	j := Longest{Late: s}
	j.Begins(a, 10*s)
	j.Begins(b, 10*s)
	wantFine(t, j.Check(a, 11*s), j.Overdue(a, 10*s), j.Check(a, 20*s))
	j.Over(b)
	wantFine(t, j.Check(b, 20*s))
	j.Begins(b, 30*s)
	wantBroken(t, j.Check(b, 32*s), &j, "longest")
	j = Longest{Late: s}
	j.Begins(a, 10*s)
	wantBroken(t, j.Overdue(a, 9*s), &j, "longest")
	j = Longest{}
	wantBroken(t, j.Overdue(a, 9*s), &j, "longest") // the hold has no longest duration
}

func TestReentry(t *testing.T) {
	var j Reentry
	wantFine(t, j.Enter("x", a, 5), j.Enter("x", a, 5), j.Enter("y", b, 4), j.Leave("x", a))
	if j.Count("x") != 1 || j.Count("y") != 1 || j.Count("z") != 0 {
		t.Fatal("Count is wrong")
	}
	wantFine(t, j.Leave("x", a), j.Enter("x", b, 6), j.Leave("x", b))
	wantBroken(t, j.Enter("x", a, 6), &j, "reentry") // the token of the previous owner
	for name, broken := range map[string]func(j *Reentry) error{
		"while another is inside":   func(j *Reentry) error { return j.Enter("x", b, 7) },
		"again, with another token": func(j *Reentry) error { return j.Enter("x", a, 7) },
		"out of where another is":   func(j *Reentry) error { return j.Leave("x", b) },
		"out once more than in": func(j *Reentry) error {
			return last(j.Leave("x", a), j.Leave("x", a),
				j.Leave("x", a))
		},
	} {
		j := Reentry{}
		wantFine(t, j.Enter("x", a, 5), j.Enter("x", a, 5))
		t.Run(name, func(t *testing.T) { wantBroken(t, broken(&j), &j, "reentry") })
	}
}

func last(all ...error) error { return all[len(all)-1] }

func TestTermsBesideAHolder(t *testing.T) {
	for _, c := range []struct {
		a, b   Terms
		beside bool
	}{{Terms{}, Terms{}, false}, {shared, shared, true}, {shared, Terms{}, false}, {two, Terms{1, 3}, true},
		{two, two, false}, {two, shared, true}} {
		if c.a.Beside(c.b) != c.beside || c.b.Beside(c.a) != c.beside {
			t.Errorf("%+v beside %+v: want %v", c.a, c.b, c.beside)
		}
	}
	var f FIFO
	wantFine(t, f.Queued("x", 1, shared, false), f.Granted("x", 1), f.Queued("x", 2, shared, true))
	if f.Waits("x", shared) || !f.Waits("x", Terms{}) || f.Waits("y", Terms{}) {
		t.Error("a queued reader must wait for a writer, and not for a reader")
	}
}
