package judge_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
	"github.com/mortise-lock/mortise/judge"
	"github.com/mortise-lock/mortise/lockfsm"
)

// granted returns the event of a voter for a grant, which is a stay unless last is zero.
func granted(token, last lockfsm.Token, at int64) []history.Event {
	return []history.Event{{Kind: history.Grant, At: at, Stream: 1, Group: 1, Key: "k", Token: token, Last: last,
		Session: 4}}
}

func ended(token lockfsm.Token, at int64, how history.How) []history.Event {
	return []history.Event{{Kind: history.End, At: at, Stream: 1, Group: 1, Key: "k", Token: token, Session: 4, How: how}}
}

// locked returns the events of a call. The number of the call is its token.
func locked(token lockfsm.Token, begun, returned, unlock, unlocked int64) []history.Event {
	of := func(kind history.Kind, at int64) history.Event {
		return history.Event{Kind: kind, At: at, Stream: 2, Op: uint64(token)}
	}
	call, ret := of(history.Call, begun), of(history.Return, returned)
	call.Key, ret.Outcome, ret.Token = "k", history.Granted, token
	return []history.Event{call, ret, of(history.Unlock, unlock), of(history.Unlocked, unlocked)}
}

// held returns the events of a call with Try that failed because of a token.
func held(key string, token lockfsm.Token, begun, returned int64) []history.Event {
	return []history.Event{
		{Kind: history.Call, At: begun, Stream: 3, Op: 1, Key: key, Try: true},
		{Kind: history.Return, At: returned, Stream: 3, Op: 1, Outcome: history.Held, Token: token},
	}
}

// shared makes all requests shared.
func shared(all ...[]history.Event) [][]history.Event {
	events := slices.Concat(all...)
	for i := range events {
		if e := &events[i]; e.Key != "" && !e.Try {
			e.Permits = 1
		}
	}
	return [][]history.Event{events}
}

// The stay of these histories has token 10 and reserves the tokens up to 14.
func TestStaysByHand(t *testing.T) {
	var (
		stay     = granted(10, 14, 100)
		released = ended(10, 500, history.ByRelease)
		forced   = ended(10, 160, history.ByForce)
		first    = locked(11, 50, 110, 150, 155)
		atOnce   = locked(11, 50, 110, 170, 175)
		second   = locked(12, 120, 160, 300, 305)
		both     = slices.Concat(first, second)
		next     = slices.Concat(granted(20, 0, 205), locked(20, 200, 210, 250, 260), ended(20, 255, history.ByRelease))
		failed   = []history.Event{{Kind: history.Call, At: 60, Stream: 2, Op: 99, Key: "k"},
			{Kind: history.Return, At: 400, Stream: 2, Op: 99, Outcome: history.Failed, Err: "context"}}
	)
	for _, c := range []struct {
		name   string
		right  bool
		events [][]history.Event
	}{
		{"two passes", true, [][]history.Event{stay, both, released}},
		{"the second pass is listed first", true, [][]history.Event{stay, second, first, released}},
		{"no end", true, [][]history.Event{stay, both}},
		{"no pass", true, [][]history.Event{stay, failed, released}},
		{"held by the free stay", true, [][]history.Event{stay, both, released, held("k", 10, 450, 470)}},
		{"held by the first pass", true, [][]history.Event{stay, both, released, held("k", 11, 100, 115)}},
		{"held until the unlock is confirmed", true, [][]history.Event{stay, both, released, held("k", 11, 153, 170)}},
		{"held by a pass of a call that failed", true,
			[][]history.Event{stay, both, failed, released, held("k", 13, 301, 400)}},
		{"a lock after the stay", true, [][]history.Event{stay, first, ended(10, 500, history.ByRelease), next}},
		{"a pass whose unlock is not confirmed", true, [][]history.Event{stay, first[:3], second, released}},
		{"a call that failed is later than the stay", true,
			[][]history.Event{granted(10, 14, 400), both, locked(99, 200, 400, 0, 0)[:1], released}},
		{"no token is reserved, and the end is late", true,
			[][]history.Event{granted(10, 10, 100), locked(10, 50, 110, 150, 155), held("k", 10, 160, 170), released}},
		{"shared passes at once", true, shared(stay, atOnce, second, released)},
		{"a shared pass is seen after the next one", true,
			shared(stay, first[:2], second, held("k", 11, 165, 170))},
		{"passes after an end by force", true, [][]history.Event{stay, both, forced, next}},
		{"held by a pass after an end by force", true,
			[][]history.Event{stay, both, forced, next, held("k", 12, 270, 280)}},

		{"two passes at once", false, [][]history.Event{stay, atOnce, second, released}},
		{"two passes at once after an end by force", false, [][]history.Event{stay, atOnce, second, forced}},
		{"a shared pass ends after its stay", false, shared(stay, both, ended(10, 290, history.ByRelease))},
		{"the tokens of shared passes go back", false,
			shared(stay, locked(12, 50, 110, 170, 175), locked(11, 120, 160, 300, 305), released)},
		{"the tokens go back", false,
			[][]history.Event{stay, locked(12, 50, 110, 150, 155), locked(11, 120, 160, 300, 305), released}},
		{"a token for two calls", false, [][]history.Event{stay, first, locked(11, 120, 160, 300, 305), released}},
		{"the token of the stay", false, [][]history.Event{stay, locked(10, 50, 110, 150, 155), second, released}},
		{"a reserved token is granted", false, [][]history.Event{stay, both, released, granted(13, 0, 600)}},
		{"a lock between two passes", false,
			[][]history.Event{stay, first, released, next, locked(12, 270, 280, 300, 305)}},
		{"a lock between two passes, and the end is unknown", false,
			[][]history.Event{stay, first, next, locked(12, 270, 280, 300, 305)}},
		{"a pass inside an earlier lock", false,
			[][]history.Event{granted(5, 0, 30), locked(5, 20, 40, 115, 116), stay, both, released}},
		{"a pass inside an earlier lock, and the stay is recorded late", false,
			[][]history.Event{granted(5, 0, 30), locked(5, 20, 40, 115, 116), granted(10, 14, 450), both, released}},
		{"a pass ends after its stay", false, [][]history.Event{stay, both, ended(10, 290, history.ByRelease)}},
		{"a pass begins after its stay", false,
			[][]history.Event{stay, first, locked(12, 510, 520, 530, 540), released}},
		{"held by a pass of a later call", false,
			[][]history.Event{granted(10, 14, 400), failed[:1], released, held("k", 13, 30, 40)}},
		{"held before the pass", false, [][]history.Event{stay, both, released, held("k", 12, 100, 119)}},
		{"held while the earlier pass lasts", false, [][]history.Event{stay, both, released, held("k", 12, 121, 149)}},
		{"held after the pass", false, [][]history.Event{stay, both, released, held("k", 11, 158, 170)}},
		{"held after the next pass", false,
			[][]history.Event{stay, first[:3], second, released, held("k", 11, 165, 170)}},
		{"held after the stay", false, [][]history.Event{stay, both, failed, released, held("k", 13, 501, 510)}},
		{"held by a pass after another lock", false,
			[][]history.Event{stay, first, failed, released, next, held("k", 13, 270, 280)}},
		{"held by a pass of another key", false, [][]history.Event{stay, both, released, held("l", 12, 200, 210)}},
	} {
		events, apart := slices.Concat(c.events...), strict()
		apart.Uncertainty = 10
		if err := judge.Porcupine(events, apart); err != nil && c.right {
			t.Errorf("%s: with uncertainty: %v", c.name, err)
		}
		err := judge.Porcupine(events, strict())
		if errors.Is(err, judge.ErrUnknown) || (err == nil) != c.right {
			t.Errorf("%s: right is %v, and Porcupine returned %v", c.name, c.right, err)
		}
	}
}

// A call that resumes a hold names one key, and has all keys of the hold.
func TestAResumedCallHasAllKeysOfItsHold(t *testing.T) {
	resumed, hold := locked(5, 50, 110, 300, 310), granted(5, 0, 100)
	resumed[0].Resumes, hold[0].Keys = 3, []string{"l"}
	over := ended(5, 305, history.ByRelease)
	over[0].Keys = []string{"l"}
	for _, at := range []int64{0, 200} {
		other, taken, freed := locked(6, 190+at, 210+at, 250+at, 260+at), granted(6, 0, 200+at),
			ended(6, 255+at, history.ByRelease)
		for _, e := range []*history.Event{&other[0], &taken[0], &freed[0]} {
			e.Key = "l"
		}
		err := judge.Porcupine(slices.Concat(hold, resumed, over, taken, other, freed), strict())
		if errors.Is(err, judge.ErrUnknown) || (err == nil) != (at > 0) {
			t.Errorf("the other key is granted at %d: %v", 200+at, err)
		}
	}
}

// A pass may last after its stay has ended by force.
func TestForceOfAStayIsNoViolation(t *testing.T) {
	at := slices.IndexFunc(historytest.Plants(),
		func(p historytest.Plant) bool { return p.Name == "a pass outlives its stay" })
	events := historytest.Plants()[at].Break(historytest.Make(stays(1, 200)))
	if judge.Porcupine(events, strict()) == nil {
		t.Error("a pass outlives its stay")
	}
	last := map[lockfsm.Token]bool{}
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.Grant && e.Last != 0:
			last[e.Token] = true
		case e.Kind == history.End && last[e.Token]:
			e.How = history.ByForce
		}
	}
	if err := judge.Judge(events, strict()); err != nil {
		t.Error(err)
	}
}
