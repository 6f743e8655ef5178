package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestAttachStorm checks a new leader with the Attach of every instance in its inbox. All Attaches
// must be accepted in the order of arrival, in a few turns with bounded proposals.
func TestAttachStorm(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel()
	const sessions, locks = 10_000, 8
	b := leadingBench(t)
	ids := make([]lockfsm.SessionID, sessions+1)
	turns := func(why string, most int, done func(nodeid.ID, session.Reply)) {
		t.Helper()
		for n := 0; ; n++ {
			b.turn()
			size := len(b.blob)
			for p, all := range b.replies {
				for _, r := range all {
					done(p, r)
				}
			}
			if size > blobBytes+(4<<10) {
				t.Fatalf("%s: a proposal of %d bytes", why, size)
			}
			if round := b.round; round != 0 {
				b.core.Confirmed(b.now, b.term, round)
			}
			if size == 0 && len(b.replies) == 0 {
				return
			}
			if b.apply(); n == most {
				t.Fatalf("%s: not done after %d turns", why, n)
			}
		}
	}
	nonce := func(n int) lockfsm.Nonce { return lockfsm.Nonce{1, byte(n), byte(n >> 8), byte(n >> 16)} }
	for n := 1; n <= sessions; n++ {
		b.send(nodeidtest.ID(uint64(n)), lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(n), TTL: benchTTL,
			Record: []byte("r")})
	}
	turns("open", 10, func(p nodeid.ID, r session.Reply) { ids[nodeidtest.Number(p)] = r.Session })
	for n := 1; n <= sessions; n++ {
		cmds := []lockfsm.Command{{Kind: lockfsm.Attach, Session: ids[n], Epoch: 1, Number: 1, Nonce: nonce(n)}}
		for i := range locks {
			cmds = append(cmds, acquireCmd(ids[n], 1, lockfsm.Number(i+1), fmt.Sprint("k", n, "-", i)))
		}
		b.send(nodeidtest.ID(uint64(n)), cmds...)
	}
	turns("lock", 20, func(nodeid.ID, session.Reply) {})

	b.core.Role(b.now, Role{Term: 6})
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(1 << 20), Addr: "self"}})
	b.term = 6
	b.leads()
	b.turn() // discards the replies of the turn
	attached, renewed, states := 0, 0, 0
	for epoch := lockfsm.Epoch(2); epoch <= 3; epoch++ { // each client attaches twice
		for n := 1; n <= sessions; n++ {
			c := lockfsm.Command{Kind: lockfsm.Attach, Session: ids[n], Epoch: epoch, Number: locks +
				1, Nonce: nonce(n)}
			c.Live = []lockfsm.Range{{First: 1, Last: locks}}
			b.core.Receive(b.now, nodeidtest.ID(uint64(n)), session.Renewal{Session: ids[n], Epoch: epoch,
				Seq: uint64(epoch)}.Append(nil), c.Append(nil))
		}
	}
	began := time.Now()
	turns("attach again", 10, func(_ nodeid.ID, r session.Reply) {
		switch r.Kind {
		case session.ReplyAttached:
			attached++
		case session.ReplyRenewed:
			renewed++
		case session.ReplyState:
			states++
		}
	})
	t.Logf("%d sessions with %d locks each are attached again in %v", sessions, locks, time.Since(began))
	if attached != sessions || renewed != sessions || states != sessions*locks {
		t.Errorf("%d sessions are attached and %d renewed, of %d; %d states are told", attached, renewed, sessions,
			states)
	}
}
