package history_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/lockfsm"
)

// asked are requests of every kind.
func asked() (all []history.Event) {
	of := func(key string, keys []string, permits, of uint32, modes ...lockfsm.Mode) {
		all = append(all, history.Event{Key: key, Keys: keys, Permits: permits, Of: of, Modes: history.Modes(modes)})
	}
	for _, permits := range []uint32{0, 1} {
		of("a", nil, permits, 0)
		of("a/b", nil, permits, 0)
		of("z", nil, permits, 0)
		of("a", []string{"z"}, permits, 0)
		of("a", []string{"a/b"}, permits, 0)
	}
	of("a", nil, 1, 3)
	of("a", nil, 3, 3)
	of("a", nil, 0, 0, lockfsm.ModeU)
	for _, m := range [][2]lockfsm.Mode{{lockfsm.ModeIX, lockfsm.ModeX}, {lockfsm.ModeIS, lockfsm.ModeS}} {
		of("a", nil, 0, 0, m[1])
		of("a", []string{"a/b"}, 0, 0, m[0], m[1])
		of("a", []string{"a/c"}, 0, 0, m[0], m[1])
		of("a", []string{"a/b", "a/b/c"}, 0, 0, m[0], m[0], m[1])
	}
	return all
}

func grantOf(e history.Event) *lockfsm.Grant {
	g := &lockfsm.Grant{Key: e.Key, Keys: e.Keys, Permits: e.Permits, Of: e.Of}
	for _, digit := range e.Modes {
		g.Modes = append(g.Modes, lockfsm.Mode(digit-'0'))
	}
	return g
}

// covered is the rule of the product, for a request with the terms of want: for keys, or for the
// last node of a path.
func covered(has *lockfsm.Grant, want history.Event) bool {
	g := grantOf(want)
	p := modes.Part{Tree: g.Modes != nil && !g.Upgradable()}
	switch {
	case g.Of != 0:
		p.Mode = modes.Permits(int(g.Permits), int(g.Of))
	case g.Upgradable():
		p.Mode = modes.Upgradable
	case g.Reads():
		p.Mode = modes.Shared
	}
	keys := append([]string{want.Key}, want.Keys...)
	if p.Tree {
		keys = keys[len(keys)-1:]
	}
	return !slices.ContainsFunc(keys, func(key string) bool {
		p.Key = key
		return !p.CoveredBy(has)
	})
}

// entering returns a history in which a caller gets a lock and enters it with a second request. The
// call may resume a hold of which it knows one key only.
func entering(has, want history.Event, resumes lockfsm.Token, between ...history.Event) []history.Event {
	grant := has
	grant.Kind, grant.At, grant.Stream, grant.Group, grant.Token, grant.Place = history.Grant, 20, 1, 1, 11, 10
	grant.Index, grant.Seq, grant.Rev, grant.Session, grant.Number = 5, 2, 11, 4, 1
	call := has
	events := []history.Event{{Kind: history.Begin, At: 1, Stream: 1, Group: 1, Index: 1, Rev: 1}}
	if resumes != 0 {
		before, end := grant, grant
		before.Token, before.Index, before.Seq, before.At, before.Session, before.Rev = resumes, 3, 1, 5, 3,
			lockfsm.Revision(resumes)
		before.Place, grant.Place = lockfsm.Revision(resumes-1), lockfsm.Revision(resumes-1)
		end.Kind, end.Token, end.Seq, end.How = history.End, resumes, 1, history.ByForce
		end.Session, end.Place = 3, before.Place
		call, grant.Resumes = history.Event{Key: has.Key, Resumes: resumes}, resumes
		events = append(events, before, end)
	}
	call.Kind, call.At, call.Stream, call.Op = history.Call, 10, 2, 1
	want.Kind, want.At, want.Stream, want.Op = history.Enter, 60, 2, 1
	events = append(events, grant, call, history.Event{Kind: history.Return, At: 30, Stream: 2, Op: 1,
		Outcome: history.Granted, Token: 11})
	for _, e := range between {
		e.Key, e.Keys = has.Key, has.Keys
		if e.Op != 0 {
			e.Key, e.Keys = "", nil
		}
		events = append(events, e)
	}
	return append(events, want)
}

// TestEnteredRequestsAreJudged lets requests of every kind enter locks of every kind. The judge
// computes with permits, and must come to the verdicts of the product's order of modes.
func TestEnteredRequestsAreJudged(t *testing.T) {
	allowed := 0
	for _, has := range asked() {
		for _, want := range asked() {
			for _, resumes := range []lockfsm.Token{0, 8} {
				err := history.Judge(entering(has, want, resumes), history.Options{})
				v := (*history.Violation)(nil)
				broken := errors.As(err, &v) && v.Rule == history.Inside
				if err != nil && !broken {
					t.Fatalf("%+v enters %+v: %v", want, has, err)
				}
				if !broken {
					allowed++
				}
				if covered(grantOf(has), want) == broken {
					t.Errorf("%+v enters %+v, which covers it: %v; the judge: %v", want, has, !broken, err)
				}
			}
		}
	}
	if allowed < 50 {
		t.Errorf("only %d are allowed", allowed)
	}
}

// TestAWriterInsideAReader is what a taken-over hold did before its grant was reported: the caller
// resumed a shared hold, and entered it as a writer.
func TestAWriterInsideAReader(t *testing.T) {
	alone, shared := history.Event{Key: "a"}, history.Event{Key: "a", Permits: 1}
	lowers := history.Event{Kind: history.Downgrade, At: 40, Stream: 2, Op: 1}
	becomes := history.Event{Kind: history.Shared, At: 50, Stream: 1, Group: 1, Index: 6, Seq: 1, Rev: 12, Token: 11,
		Place: 10, Session: 4, Number: 1, Permits: 1}
	unlocks := history.Event{Kind: history.Unlock, At: 40, Stream: 2, Op: 1}
	for _, c := range []struct {
		name   string
		events []history.Event
		right  bool
	}{
		{"a writer enters a resumed reader", entering(shared, alone, 8), false},
		{"a reader enters a resumed reader", entering(shared, shared, 8), true},
		{"a writer enters a resumed writer", entering(alone, alone, 8), true},
		{"a writer enters behind the downgrade", entering(alone, alone, 0, lowers, becomes), false},
		{"a reader enters behind the downgrade", entering(alone, shared, 0, lowers, becomes), true},
		{"a writer enters behind a refused downgrade", entering(alone, alone, 0, lowers), true},
		{"a reader enters behind the unlock", entering(shared, shared, 0, unlocks), false},
	} {
		err := history.Judge(c.events, history.Options{})
		v := (*history.Violation)(nil)
		if c.right && err != nil || !c.right && (!errors.As(err, &v) || v.Rule != history.Inside) {
			t.Errorf("%s: %v", c.name, fmt.Sprint(err))
		}
	}
}
