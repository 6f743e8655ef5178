package history_test

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

type account struct {
	machine *lockfsm.Machine
	trail   *history.Trail
}

// TestTrailOfADelayedLock checks that a lock with an expiry delay does not end at the first expiry
// of its session. A voter that begins with a snapshot taken after that expiry must record the same
// events from then on.
func TestTrailOfADelayedLock(t *testing.T) {
	var events []history.Event
	voter := func(stream int, m *lockfsm.Machine, index uint64) account {
		events = append(events, history.Event{Kind: history.Header, Stream: stream})
		trail := history.NewTrail(1, func(e history.Event) {
			e.At, e.Stream = int64(len(events)+1), stream
			events = append(events, e)
		})
		trail.Start(index, m)
		return account{m, trail}
	}
	m, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1,
		SessionTTL: time.Second, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	first := voter(1, m, 0)
	voters := []account{first}
	index := uint64(0)
	apply := func(c lockfsm.Command) (last lockfsm.Result) {
		index++
		c.Term = 1
		for _, v := range voters {
			v.trail.Entry(index, c.Append(nil))
			v.machine.ApplyEntry(index, 1, c.Append(nil), func(r *lockfsm.Result) {
				v.trail.Result(*r, v.machine)
				last = *r
			})
		}
		return last
	}
	apply(lockfsm.Command{Kind: lockfsm.Born})
	s := apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}}).Session
	apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 1, Key: "a", Keys: []string{"b"},
		Delay: time.Second})
	apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: s, Number: 2, Key: "c"})
	apply(lockfsm.Command{Kind: lockfsm.Expire, Session: s})
	first.trail.Mark()
	copied, err := lockfsm.Restore(m.Snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	voters = append(voters, voter(2, copied, index))
	ends := func() (keys string) {
		for _, e := range events {
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
	if err := history.Judge(events, history.Options{}); err != nil {
		t.Error(err)
	}
}
