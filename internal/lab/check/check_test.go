package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

var a, b = Caller{"a", 1}, Caller{"b", 1}

func wantBroken(t *testing.T, err error, judge interface{ Err() error }, rule string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), rule+":") {
		t.Fatalf("got %v, want a violation of %s", err, rule)
	}
	if judge.Err() != err {
		t.Fatalf("Err is %v after %v", judge.Err(), err)
	}
}

func wantFine(t *testing.T, errs ...error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func TestTokens(t *testing.T) {
	var j Tokens
	wantFine(t, j.Grant("x", 5), j.Grant("y", 4), j.Grant("x", 6))
	wantBroken(t, j.Grant("x", 6), &j, "tokens")
	if first := j.Err(); j.Grant("y", 1) != first || j.Grant("x", 100) != first {
		t.Fatal("the first violation did not stay")
	}
	j = Tokens{}
	wantFine(t, j.Grant("x", 5))
	wantBroken(t, j.Grant("x", 4), &j, "tokens")
	j = Tokens{}
	wantBroken(t, j.Grant("x", 0), &j, "tokens")
}

func TestFrontSeesEachEntryOnce(t *testing.T) {
	var f Front
	got := []bool{f.First(1, 1), f.First(1, 1), f.First(2, 1), f.First(1, 3), f.First(1, 2)}
	for i, want := range []bool{true, false, true, true, false} {
		if got[i] != want {
			t.Errorf("step %d: %v", i, got[i])
		}
	}
}

// The variable shared has the terms of a shared request. The variable two has the terms of a
// request for two permits of three.
var shared, two = Terms{Permits: 1}, Terms{Permits: 2, Of: 3}

func TestFIFO(t *testing.T) {
	var j FIFO
	queue := func(key string, places ...lockfsm.Revision) {
		t.Helper()
		for _, at := range places {
			wantFine(t, j.Queued(key, at, Terms{}, false))
		}
	}
	queue("x", 1, 2, 3)
	queue("y", 2)
	wantFine(t, j.Granted("x", 1), j.Gone("x", 2), j.Gone("x", 1), j.Granted("x", 3), j.Granted("y", 2), j.Gone("x", 3))
	queue("x", 4, 5)
	wantBroken(t, j.Granted("x", 5), &j, "fifo")
	j = FIFO{}
	queue("x", 1, 2)
	wantFine(t, j.Gone("x", 1), j.Granted("x", 2))
	wantBroken(t, j.Granted("x", 1), &j, "fifo")
	j = FIFO{}
	queue("x", 1)
	wantFine(t, j.Granted("x", 1))
	wantBroken(t, j.Granted("x", 1), &j, "fifo")
	j = FIFO{}
	queue("x", 2)
	wantBroken(t, j.Queued("x", 1, Terms{}, false), &j, "fifo")
	j = FIFO{}
	wantBroken(t, j.Granted("x", 10), &j, "fifo")
	j = FIFO{}
	queue("x", 1, 2)
	wantFine(t, j.Granted("x", 1))
	wantBroken(t, j.Granted("x", 2), &j, "fifo")
}

func TestFIFOOfKinds(t *testing.T) {
	var j FIFO
	wantFine(t, j.Queued("x", 1, shared, false), j.Queued("x", 2, shared, false), j.Queued("x", 3, Terms{}, false),
		j.Queued("x", 4, shared, false))
	wantFine(t, j.Granted("x", 1), j.Granted("x", 2))
	wantBroken(t, j.Granted("x", 4), &j, "fifo")
	j = FIFO{}
	wantFine(t, j.Queued("x", 1, two, false), j.Granted("x", 1), j.Queued("x", 2, Terms{1, 3}, false),
		j.Granted("x", 2), j.Queued("x", 3, Terms{1, 3}, false))
	wantBroken(t, j.Granted("x", 3), &j, "fifo")
	j = FIFO{}
	wantFine(t, j.Queued("x", 1, Terms{2, 4}, false), j.Granted("x", 1), j.Queued("x", 2, two, true))
	wantBroken(t, j.Granted("x", 2), &j, "fifo")
	j = FIFO{}
	// request 1 waited for another key
	wantFine(t, j.Queued("x", 1, shared, true), j.Queued("x", 2, shared, false), j.Granted("x", 2), j.Granted("x", 1))
	wantFine(t, j.Queued("x", 3, shared, false), j.Queued("x", 4, shared, true))
	wantBroken(t, j.Granted("x", 4), &j, "fifo") // request 3 waits for no other key
	j = FIFO{}
	wantFine(t, j.Queued("x", 1, Terms{}, true), j.Queued("x", 2, shared, false))
	wantBroken(t, j.Granted("x", 2), &j, "fifo") // request 1 waits for another key
}

func TestBeliefs(t *testing.T) {
	var j Beliefs
	alone := Terms{}
	wantFine(t, j.End("x", a, 0), j.Begin("x", a, alone, 1), j.Begin("y", b, alone, 1), j.End("x", a, 5),
		j.End("x", a, 5), j.Begin("x", b, alone, 5))
	if !j.Believes("x", b) || j.Believes("x", a) || j.Believes("z", Caller{}) || j.Count() != 2 {
		t.Fatal("the beliefs are wrong")
	}
	wantBroken(t, j.Begin("x", a, alone, 6), &j, "beliefs")
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, alone, 1), j.End("x", b, 2)) // b has no belief
	wantBroken(t, j.Begin("x", b, alone, 3), &j, "beliefs")
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, alone, 7))
	wantBroken(t, j.End("x", a, 6), &j, "beliefs")

	j = Beliefs{}
	wantFine(t, j.Begin("x", a, shared, 1), j.Begin("x", b, shared, 1), j.End("x", a, 2))
	wantBroken(t, j.Begin("x", a, alone, 3), &j, "beliefs") // an exclusive holder together with a shared one
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, alone, 1))
	wantBroken(t, j.Begin("x", b, shared, 2), &j, "beliefs") // a shared holder together with an exclusive one
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, two, 1), j.Begin("x", b, Terms{1, 3}, 1))
	wantBroken(t, j.Begin("x", Caller{"c", 1}, Terms{1, 4}, 2), &j, "beliefs") // four permits of three

	// A hold and its handle count once, and what is more of the two.
	inside := Caller{"inside", 1}
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, alone, 1), j.BeginBeside("x", inside, shared, a, 2))
	j.Lower("x", a, shared)
	wantFine(t, j.Begin("x", b, two, 3), j.End("x", b, 4))
	j.Lower("x", a, alone)
	wantBroken(t, j.Begin("x", b, two, 5), &j, "beliefs") // the hold is alone
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, alone, 1), j.BeginBeside("x", inside, alone, a, 2))
	j.Lower("x", a, shared)
	wantBroken(t, j.Begin("x", b, two, 3), &j, "beliefs") // the handle is alone
	j = Beliefs{}
	wantFine(t, j.Begin("x", a, two, 1), j.BeginBeside("x", inside, two, a, 2), j.End("x", a, 3))
	wantBroken(t, j.Begin("x", b, two, 4), &j, "beliefs") // the handle outlives its hold
}

func TestRegister(t *testing.T) {
	var j Register
	write := func(key string, who Caller, token lockfsm.Token, believes, accepted bool) {
		t.Helper()
		got, err := j.Write(key, who, token, believes)
		wantFine(t, err)
		if got != accepted {
			t.Fatalf("token %d of %v: accepted %v", token, who, got)
		}
	}
	write("x", a, 5, true, true)
	write("x", a, 5, false, true) // after the end of the belief; no other caller wrote
	write("x", b, 7, true, true)
	write("x", a, 5, false, false)
	write("y", a, 6, true, true)
	if j.Refused() != 1 {
		t.Fatalf("%d refused", j.Refused())
	}
	_, err := j.Write("x", a, 5, true) // a holder with a token that is too low
	wantBroken(t, err, &j, "register")
	j = Register{}
	write("x", a, 5, true, true)
	_, err = j.Write("x", b, 5, true)
	wantBroken(t, err, &j, "register")
	j = Register{}
	wantFine(t, j.Observed("x", b, 7, true, true))
	wantBroken(t, j.Observed("x", a, 5, false, true), &j, "register") // a token that it must refuse
	j = Register{}
	write("x", a, 5, true, true)
	wantFine(t, j.Read("x", b, 6, true), j.Read("x", b, 4, false), j.Read("y", b, 1, true))
	wantBroken(t, j.Read("x", b, 4, true), &j, "register")
}

func TestHashes(t *testing.T) {
	var j Hashes
	wantFine(t, j.Applied(1, 1, Sum([]byte("s")), "a"), j.Applied(1, 1, Sum([]byte("s")), "b"),
		j.Applied(2, 1, Sum([]byte("other")), "b"))
	wantBroken(t, j.Applied(1, 1, Sum([]byte("S")), "c"), &j, "hashes")
}

func TestRaft(t *testing.T) {
	var j Raft
	wantFine(t, j.Leads(1, 1, 10), j.Leads(1, 1, 10), j.Leads(1, 2, 11), j.Leads(2, 1, 12))
	wantBroken(t, j.Leads(1, 2, 10), &j, "raft")
	j = Raft{}
	wantFine(t, j.Votes(1, 1, 10, 11), j.Votes(1, 1, 10, 0), j.Votes(1, 1, 10, 11), j.Votes(1, 2, 10, 12),
		j.Votes(1, 1, 11, 12))
	wantBroken(t, j.Votes(1, 1, 10, 12), &j, "raft")
	j = Raft{}
	wantFine(t, j.Committed(1, 1, 1, 7, "a"), j.Committed(1, 1, 1, 7, "b"), j.Committed(1, 2, 1, 8, "a"),
		j.Committed(2, 1, 1, 9, "a"))
	wantBroken(t, j.Committed(1, 1, 1, 8, "c"), &j, "raft")
	j = Raft{}
	wantFine(t, j.Committed(1, 1, 1, 7, "a"))
	wantBroken(t, j.Committed(1, 1, 2, 7, "b"), &j, "raft")
}

func TestRising(t *testing.T) {
	base := Progress{Term: 2, Commit: 5, Applied: 4, Revision: 9}
	for _, back := range []Progress{{1, 5, 4, 9}, {2, 4, 4, 9}, {2, 5, 3, 9}, {2, 5, 4, 8}, {2, 5, 6, 9}} {
		var j Rising
		wantFine(t, j.Observed("a", base), j.Observed("a", base), j.Observed("b", Progress{}))
		wantBroken(t, j.Observed("a", back), &j, "rising")
	}
	var j Rising
	wantFine(t, j.Observed("a", base))
	j.Forget("a")
	wantFine(t, j.Observed("a", Progress{Term: 1}))
}

func TestGroups(t *testing.T) {
	var j Groups
	wantFine(t, j.Born(1, 100, 11, 12, 13))
	j.Ended(1, 11)
	j.EndedEverywhere(12) // one of three voters
	wantFine(t, j.Born(2, 200, 13, 21, 22))
	if j.Count() != 2 {
		t.Fatal("Count is not 2")
	}
	wantBroken(t, j.Born(3, 300, 31), &j, "groups") // two of three voters of group 2 have not ended
	j = Groups{}
	wantFine(t, j.Born(1, 100, 11))
	j.Ended(1, 11)
	wantBroken(t, j.Born(2, 100, 21), &j, "groups") // equal founding times
	j = Groups{}
	wantFine(t, j.Born(1, 100, 11))
	wantBroken(t, j.Born(1, 200, 11), &j, "groups")
	j = Groups{}
	wantBroken(t, j.Born(1, 100, 11, 12), &j, "groups")
	j = Groups{}
	wantFine(t, j.Born(1, 100, 11, 12, 13))
	j.Ended(2, 11)
	j.Ended(1, 12)
	wantBroken(t, j.Born(2, 200, 21), &j, "groups")
}

func TestServed(t *testing.T) {
	const s = time.Second
	x, y := []string{"x"}, []string{"y"}
	j := Served{Bound: 10 * s}
	j.Waits(x, a, false, 0)
	wantFine(t, j.Check(100*s)) // the faults have not ended
	j.Heal(100 * s)
	wantFine(t, j.Check(110*s), j.Answered(a, true, 110*s))
	j.Waits(x, b, false, 110*s)
	wantFine(t, j.Check(300*s)) // caller a holds the lock
	j.Freed("x", a, 300*s)
	wantFine(t, j.Check(310*s))
	if j.Waiting() != 1 {
		t.Fatal("b waits")
	}
	wantBroken(t, j.Answered(b, true, 311*s), &j, "served")

	j = Served{Bound: 10 * s}
	j.Heal(0)
	j.Waits(x, a, false, 0)
	wantFine(t, j.Answered(a, true, s))
	j.Waits(x, b, false, s)
	j.Soon(b, 50*s) // its context has ended
	wantFine(t, j.Check(60*s))
	wantBroken(t, j.Check(61*s), &j, "served")

	j = Served{Bound: 10 * s}
	j.Heal(0)
	c, d := Caller{"c", 1}, Caller{"d", 1}
	for _, who := range []Caller{a, b} { // callers a and b hold y as readers
		j.Waits(y, who, false, 0)
		wantFine(t, j.Answered(who, true, 0))
	}
	j.Waits([]string{"x", "y"}, c, false, 0)
	j.Waits(x, d, false, 0)
	j.Freed("y", a, s)
	wantFine(t, j.Check(100*s))
	j.Freed("y", b, 100*s)
	wantFine(t, j.Check(110*s))
	wantBroken(t, j.Check(111*s), &j, "served")
}

func TestLeft(t *testing.T) {
	wantFine(t, Left("a", lockfsm.Counts{Sessions: 3}, 3))
	for _, c := range []lockfsm.Counts{{Sessions: 4}, {Sessions: 3, Locks: 1}, {Sessions: 3, Entries: 1},
		{Sessions: 3, Waiters: 1}} {
		if Left("a", c, 3) == nil {
			t.Errorf("%+v is left", c)
		}
	}
}

func TestAcks(t *testing.T) {
	held := func(tokens ...lockfsm.Token) map[string][]lockfsm.Token {
		return map[string][]lockfsm.Token{"x": tokens}
	}
	alone := Terms{}
	var j Acks
	j.Granted(5, "x", alone, 50)
	wantFine(t, j.Replica("slow", 4, nil), j.Replica("r", 5, held(50)), j.Replica("ahead", 9, held(60)))
	j.Ended(7, "x", alone, 50, "release")
	wantFine(t, j.Released(7, "x", 50), j.Replica("slow", 6, held(50)), j.Replica("r", 7, nil))
	j.Ended(12, "x", alone, 60, "expire") // not acknowledged
	wantFine(t, j.Replica("slow", 8, held(60)), j.Replica("slow", 6, held(50)), j.Replica("r", 12, nil))
	j.Granted(13, "x", shared, 70)
	j.Granted(14, "x", shared, 80)
	j.Ended(15, "x", shared, 80, "release")
	wantFine(t, j.Replica("r", 14, held(70, 80)), j.Replica("r", 15, held(70)), j.Replica("r", 15, held(70, 90)))
	for i := range uint64(1000) { // old ended grants are removed
		j.Ended(20+i, "x", shared, lockfsm.Token(100+i), "release")
	}
	j.Granted(1020, "x", shared, 100) // acknowledged after its end
	wantFine(t, j.Replica("r", 1020, held(70)))
	if len(j.keys["x"].grants) > remembered+1 {
		t.Errorf("%d grants are kept", len(j.keys["x"].grants))
	}

	broken := func(name string, feed func(j *Acks) error) {
		t.Run(name, func(t *testing.T) {
			var j Acks
			j.Granted(5, "x", alone, 50)
			wantBroken(t, feed(&j), &j, "acks")
		})
	}
	broken("grant lost", func(j *Acks) error { return j.Replica("r", 5, nil) })
	broken("grant forgotten", func(j *Acks) error { return j.Replica("r", 5, held(40)) })
	broken("release not in the log", func(j *Acks) error { return j.Released(7, "x", 50) })
	broken("release comes later", func(j *Acks) error {
		j.Ended(8, "x", alone, 50, "release")
		return j.Released(7,
			"x", 50)
	})
	broken("release lost", func(j *Acks) error {
		j.Ended(7, "x", alone, 50, "release")
		return j.Replica("r", 7, held(50))
	})
	broken("old holder back", func(j *Acks) error {
		j.Ended(7, "x", alone, 50, "release")
		return j.Replica("r", 7,
			held(40))
	})
	broken("one of two readers lost", func(j *Acks) error {
		j.Ended(7, "x", alone, 50, "release")
		j.Granted(8, "x", shared, 60)
		j.Granted(8, "x", shared, 70)
		return j.Replica("r", 8, held(70))
	})
	broken("a reader stays", func(j *Acks) error {
		j.Ended(7, "x", alone, 50, "release")
		j.Granted(8, "x", shared, 60)
		j.Granted(8, "x", shared, 70)
		j.Ended(9, "x", shared, 60, "release")
		return j.Replica("r", 9, held(60, 70))
	})
}

func TestHolders(t *testing.T) {
	got := Holders([]lockfsm.EntryInfo{{Key: "x", Token: 5}, {Key: "x", Token: 6}, {Key: "x"}, {Key: "y"}})
	if len(got) != 1 || !slices.Equal(got["x"], []lockfsm.Token{5, 6}) {
		t.Fatal(got)
	}
}
