package keeper

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// FuzzKeeper checks that arbitrary bytes from one peer do not affect another peer.
func FuzzKeeper(f *testing.F) {
	f.Add(session.Renewal{Session: 1, Epoch: 1, Seq: 1, Heard: 0}.Append(nil), acquireCmd(1, 1, 1, "x").Append(nil))
	f.Add([]byte{0xff}, []byte{3, 1, 2, 3})
	f.Add([]byte(nil), lockfsm.Command{Kind: lockfsm.Open,
		Nonce: lockfsm.Nonce{1}}.Append(lockfsm.Command{Kind: lockfsm.Attach, Session: 1, Epoch: 2, Number: 1,
		Nonce: lockfsm.Nonce{1}}.Append(nil)))
	f.Add([]byte(nil), lockfsm.Command{Kind: lockfsm.Expire, Session: 1, Term: 5}.Append(nil))
	f.Add([]byte(nil), lockfsm.Command{Rules: lockfsm.RulesVersion + 1, Kind: 200, Session: 1, Epoch: 1}.Append(nil))
	f.Fuzz(func(t *testing.T, renewals, commands []byte) {
		b := leadingBench(t)
		one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
		b.core.Receive(b.now, nodeidtest.ID(1), renewals, commands)
		b.step()
		// From here on, the same commands are sent on the peer's own attachment.
		for _, kind := range []lockfsm.Kind{lockfsm.Acquire, lockfsm.Release} {
			b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: one, Epoch: 1, Seq: 1,
				Heard: 0}.Append(renewals), lockfsm.Command{Kind: kind, Session: one, Epoch: 1, Number: 1,
				Key: "x"}.Append(commands))
			b.step()
		}
		b.renew(nodeidtest.ID(2), two, 1, 1)
		b.send(nodeidtest.ID(2), acquireCmd(two, 1, 1, "y"))
		b.step()
		if b.core.peers.attachments[two] == nil || b.core.peers.attachments[two].peer.id != nodeidtest.ID(2) {
			t.Fatalf("peer 2 has lost its attachment: %q", b.said(nodeidtest.ID(2)))
		}
		if err := b.machine.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
