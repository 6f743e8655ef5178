package history_test

import (
	"errors"
	"testing"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// upgraded returns a history of one node. A reader (call 1) and an upgradable hold (call 2) share
// the key. The hold is upgraded (call 3) when the reader has unlocked. A second reader (call 4)
// asks before the upgrade is granted, and is granted after the step back.
func upgraded() (events []history.Event) {
	at := int64(0)
	say := func(e history.Event) {
		at += 10
		e.At, e.Node, e.Stream = at, "node-0", 1
		events = append(events, e)
	}
	hold := history.Event{Key: "k", Modes: history.Modes([]lockfsm.Mode{lockfsm.ModeU}), Token: 104, Place: 103,
		Session: 99, Number: 2}
	reader := history.Event{Key: "k", Permits: 1, Token: 102, Place: 101, Session: 98, Number: 1}
	up := history.Event{Key: "k", Upgrades: 104, Token: 108, Place: 105, Session: 99, Number: 3}
	late := history.Event{Key: "k", Permits: 1, Token: 110, Place: 106, Session: 98, Number: 2}
	index := uint64(1)
	log := func(kind history.Kind, e history.Event, how history.How) {
		index++
		e.Kind, e.How, e.Group, e.Index, e.Seq, e.Rev = kind, how, 1, index, 1, lockfsm.Revision(108+index)
		say(e)
	}
	call := func(op uint64, e history.Event) {
		say(history.Event{Kind: history.Call, Op: op, Key: e.Key, Permits: e.Permits, Modes: e.Modes, Upgrades: e.Upgrades})
	}
	granted := func(op uint64, e history.Event) {
		log(history.Grant, e, 0)
		say(history.Event{Kind: history.Return, Op: op, Outcome: history.Granted, Token: e.Token})
	}
	unlocked := func(op uint64, e history.Event) {
		say(history.Event{Kind: history.Unlock, Op: op})
		log(history.End, e, history.ByRelease)
		say(history.Event{Kind: history.Unlocked, Op: op})
	}
	say(history.Event{Kind: history.Header, Version: history.Version})
	say(history.Event{Kind: history.Begin, Group: 1, Index: 1, Rev: 90})
	call(1, reader)
	granted(1, reader)
	call(2, hold)
	granted(2, hold)
	call(3, up)
	call(4, late)
	unlocked(1, reader)
	granted(3, up)
	unlocked(3, up)
	granted(4, late)
	unlocked(4, late)
	unlocked(2, hold)
	return events
}

// TestUpgradesAreJudged breaks each rule of upgrades in a correct history.
func TestUpgradesAreJudged(t *testing.T) {
	judged := func(events []history.Event) history.Rule {
		err := history.Judge(events, history.Options{Settled: true})
		var v *history.Violation
		if err != nil && !errors.As(err, &v) {
			t.Fatal(err)
		}
		if v == nil {
			return ""
		}
		return v.Rule
	}
	is := func(e *history.Event, kind history.Kind, token lockfsm.Token) bool {
		return e.Kind == kind && e.Token == token
	}
	swap := func(a, b func(*history.Event) bool) func([]history.Event) {
		return func(events []history.Event) {
			var at [2]int
			for i := range events {
				if a(&events[i]) {
					at[0] = i
				} else if b(&events[i]) {
					at[1] = i
				}
			}
			x, y := &events[at[0]], &events[at[1]]
			x.Index, y.Index, x.At, y.At = y.Index, x.Index, y.At, x.At
			*x, *y = *y, *x
		}
	}
	if rule := judged(upgraded()); rule != "" {
		t.Fatalf("the correct history: %s", rule)
	}
	for name, c := range map[string]struct {
		spoil func([]history.Event)
		want  history.Rule
	}{
		"granted beside a reader": {swap(
			func(e *history.Event) bool { return is(e, history.End, 102) },
			func(e *history.Event) bool { return is(e, history.Grant, 108) }), history.Overlap},
		"a reader is granted beside the upgrade": {swap(
			func(e *history.Event) bool { return is(e, history.End, 108) },
			func(e *history.Event) bool { return is(e, history.Grant, 110) }), history.Overlap},
		"a reader is granted while the upgrade waits": {func(events []history.Event) {
			for i := range events {
				if is(&events[i], history.Grant, 108) { // the request of the upgrade came before all other grants
					events[i].Place = 101
				}
			}
		}, history.Order},
		"of a hold that has ended": {func(events []history.Event) {
			for i := range events {
				if e := &events[i]; e.Upgrades != 0 {
					e.Upgrades = 102
				}
			}
		}, history.Ends},
		"of another session": {func(events []history.Event) {
			for i := range events {
				if e := &events[i]; e.Token == 108 && e.Session != 0 {
					e.Session = 98
				}
			}
		}, history.Ends},
		"another call is told of it": {func(events []history.Event) {
			for i := range events {
				if e := &events[i]; e.Kind == history.Call && e.Op == 3 {
					e.Upgrades = 0
				}
			}
		}, history.Phantom},
	} {
		events := upgraded()
		c.spoil(events)
		if rule := judged(events); rule != c.want {
			t.Errorf("%s: judged %q, want %q", name, rule, c.want)
		}
	}
}
