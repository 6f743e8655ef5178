package history_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

type account struct {
	machine *lockfsm.Machine
	trail   *history.Trail
}

// voters are replicas that apply the same commands, and the events that they have recorded.
type voters struct {
	all    []account
	index  uint64
	events []history.Event
}

func (v *voters) join(m *lockfsm.Machine) {
	stream := len(v.all) + 1
	v.events = append(v.events, history.Event{Kind: history.Header, Stream: stream})
	trail := history.NewTrail(1, func(e history.Event) {
		e.At, e.Stream = int64(len(v.events)+1), stream
		v.events = append(v.events, e)
	})
	trail.Start(v.index, m)
	v.all = append(v.all, account{m, trail})
}

// copy adds a voter that begins with a snapshot.
func (v *voters) copy(t *testing.T) {
	v.all[0].trail.Mark()
	m, err := lockfsm.Restore(v.all[0].machine.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	v.join(m)
}

func (v *voters) apply(c lockfsm.Command) (last lockfsm.Result) {
	v.index++
	c.Term = 1
	for _, a := range v.all {
		a.trail.Entry(v.index, c.Append(nil))
		a.machine.ApplyEntry(v.index, 1, c.Append(nil), func(r *lockfsm.Result) {
			a.trail.Result(*r, a.machine)
			last = *r
		})
	}
	return last
}

func found(t *testing.T, rules uint32) *voters {
	m, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: rules,
		SessionTTL: time.Second, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	v := &voters{}
	v.join(m)
	v.apply(lockfsm.Command{Kind: lockfsm.Born})
	return v
}

// TestTrailOfADelayedLock checks that a lock with an expiry delay does not end at the first expiry
// of its session. A voter that begins with a snapshot taken after that expiry must record the same
// events from then on.
func TestTrailOfADelayedLock(t *testing.T) {
	v := found(t, 1)
	apply := v.apply
	s := apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}}).Session
	apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 1, Key: "a", Keys: []string{"b"},
		Delay: time.Second})
	apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 2, Key: "c"})
	apply(lockfsm.Command{Kind: lockfsm.Expire, Session: s})
	v.copy(t)
	ends := func() (keys string) {
		for _, e := range v.events {
			if e.Kind == history.End && e.Stream == 1 {
				keys += e.Key
			}
		}
		return keys
	}
	if got := ends(); got != "c" {
		t.Errorf("after the first Expire %q has ended", got)
	}
	apply(lockfsm.Command{Kind: lockfsm.Expire, Session: s})
	if got := ends(); got != "ca" {
		t.Errorf("after the second Expire %q has ended", got)
	}
	if err := history.Judge(v.events, history.Options{}); err != nil {
		t.Error(err)
	}
}

// TestTrailWithoutReservedTokens checks the lines of sticky requests that are granted before the
// group has a wall stamp. A voter that begins with a snapshot does not know which of the waiting
// requests are sticky.
func TestTrailWithoutReservedTokens(t *testing.T) {
	v := found(t, 1)
	s := v.apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}}).Session
	sticky := lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 1, Key: "a",
		Sticky: true}
	v.apply(sticky)
	sticky.Session = v.apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{2}}).Session
	v.apply(sticky)
	v.copy(t)
	v.apply(lockfsm.Command{Kind: lockfsm.Release, Session: s, Number: 1})
	v.apply(lockfsm.Command{Kind: lockfsm.Release, Session: sticky.Session, Number: 1})
	seen := 0
	for _, e := range v.events {
		if e.Kind == history.Grant && e.Stream == 1 {
			if seen++; e.Last != e.Token {
				t.Errorf("%+v", e)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d grants", seen)
	}
	var broken *history.Violation
	if err := history.Judge(v.events, history.Options{}); errors.As(err, &broken) {
		t.Error(err)
	}
}

// TestTrailOfAStay checks the lines of a stay, of its end, and of a stay at the beginning of an
// account. A request with Try that waited for the stay must leave its queue without a line.
func TestTrailOfAStay(t *testing.T) {
	m, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1,
		SessionTTL: time.Second, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	var events []history.Event
	emit := func(e history.Event) { events = append(events, e) }
	trail := history.NewTrail(1, emit)
	trail.Start(0, m)
	queued := map[lockfsm.Revision]bool{}
	trail.Queue = func(e history.Event, leaves bool) {
		if queued[e.Place] = true; leaves {
			delete(queued, e.Place)
		}
	}
	index := uint64(0)
	apply := func(c lockfsm.Command) (last lockfsm.Result) {
		index++
		c.Term = 1
		trail.Entry(index, c.Append(nil))
		m.ApplyEntry(index, 1, c.Append(nil), func(r *lockfsm.Result) {
			trail.Result(*r, m)
			last = r.Clone()
		})
		return last
	}
	apply(lockfsm.Command{Kind: lockfsm.Born})
	apply(lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 1_700_000_060_000})
	s := apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}}).Session
	other := apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{2}}).Session
	sticky := lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 1, Key: "a",
		Sticky: true}
	granted := apply(sticky)
	sticky.Session, sticky.Number = other, 1
	apply(sticky)
	apply(lockfsm.Command{Kind: lockfsm.Release, Session: s, Number: 1})
	restored, err := lockfsm.Restore(m.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 2, Key: "a", Try: true})
	if len(queued) != 2 {
		t.Errorf("in the queue: %v", queued)
	}
	asked := lockfsm.Revision(0)
	for _, e := range m.Entries() {
		asked = max(asked, e.Place)
	}
	second := events[len(events)-1]
	apply(lockfsm.Command{Kind: lockfsm.InUse, Session: other, Number: 1, Revision: asked,
		Token: second.Token + 1})
	if len(queued) != 1 || events[len(events)-1].Index != second.Index {
		t.Errorf("in the queue: %v, last line %+v", queued, events[len(events)-1])
	}
	history.NewTrail(1, emit).Start(index, restored)
	if n := len(events); n != 6 {
		t.Fatalf("%d events: %+v", n, events)
	}
	for i, want := range []history.Event{
		1: {Kind: history.Grant, Token: granted.Token, Last: granted.Token + lockfsm.StayTokens,
			Place: lockfsm.Revision(granted.Token - 1), Session: s},
		2: {Kind: history.End, Token: granted.Token, Place: lockfsm.Revision(granted.Token - 1), Session: s},
		3: {Kind: history.Grant, Token: second.Token, Last: second.Token + lockfsm.StayTokens, Place: second.Place,
			Session: other},
		5: {Kind: history.Grant, Token: second.Token, Last: second.Token + lockfsm.StayTokens, Place: second.Place,
			Session: other},
	} {
		if e := events[i]; want.Kind != 0 && (e.Kind != want.Kind || e.Token != want.Token || e.Last != want.Last ||
			e.Place != want.Place || e.Session != want.Session) {
			t.Errorf("event %d is %+v, want %+v", i, e, want)
		}
	}
}

// TestTrailOfADowngradeByKeys gives the keys of a tree different modes. A voter that begins with a
// snapshot behind the downgrade agrees with the others, and a writer beside the readers is found.
func TestTrailOfADowngradeByKeys(t *testing.T) {
	for name, bad := range map[string]bool{"as the state has it": false, "a key is raised": true} {
		v := found(t, 1)
		s := v.apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}}).Session
		modes := []lockfsm.Mode{lockfsm.ModeIX, lockfsm.ModeX, lockfsm.ModeX}
		v.apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 1, Key: "a", Keys: []string{"a/b", "c"},
			Modes: modes})
		down := lockfsm.Command{Kind: lockfsm.Downgrade, Session: s, Number: 1,
			Modes: []lockfsm.Mode{lockfsm.ModeIS, lockfsm.ModeS, lockfsm.ModeX}}
		v.apply(down)
		v.apply(down)
		v.copy(t)
		v.apply(lockfsm.Command{Kind: lockfsm.Release, Session: s, Number: 1})
		shared := 0
		for i := range v.events {
			if e := &v.events[i]; e.Kind == history.Shared {
				if shared++; e.Modes != "130" {
					t.Errorf("%s: %+v", name, e)
				}
			}
			if e := &v.events[i]; bad && (e.Kind == history.Shared || e.Kind == history.End) {
				e.Modes = "230" // the token's own mode is 2
			} else if bad && e.Kind == history.Grant && e.Stream == 1 {
				e.Modes = "100"
			}
		}
		var broken *history.Violation
		err := history.Judge(v.events, history.Options{})
		if found := errors.As(err, &broken); shared != 1 || found != bad {
			t.Errorf("%s: %d lines of downgrades, %v", name, shared, err)
		}
	}
}
