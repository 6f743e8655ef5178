package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestAttachesArePaced checks that one owner has one Attach in the log, that a pause in proportion
// to the listed requests follows, and that later commands of the attachment come after it. Another
// owner does not wait. With a derived secret the pause is longer.
func TestAttachesArePaced(t *testing.T) {
	rights, err := capability.Build("g", time.Time{}, "lock *")
	if err != nil {
		t.Fatal(err)
	}
	attachesArePaced(t, nil, attachPause)
	attachesArePaced(t, rights, guestPause)
}

func attachesArePaced(t *testing.T, rights *capability.Capability, each time.Duration) {
	t.Helper()
	k, now := NewCore(), clock.Time(time.Hour)
	var epochs []lockfsm.Epoch
	var kinds []lockfsm.Kind
	to := &Outlets{
		Confirm: func(uint64, uint64) {}, Reply: func(nodeid.ID, []byte) error { return nil },
		Propose: func(_ uint64, blob []byte) bool {
			for len(blob) > 0 {
				command, rest, _ := lockfsm.Next(blob)
				if h, _ := lockfsm.Peek(command); h.Kind != lockfsm.Stamp {
					kinds, epochs = append(kinds, h.Kind), append(epochs, h.Epoch)
				}
				blob = rest
			}
			return true
		},
		WallUnixMS: func() int64 { return 1 },
	}
	one, other := nodeidtest.ID(1), nodeidtest.ID(2)
	info := func(id lockfsm.SessionID, by nodeid.ID) lockfsm.SessionInfo {
		return lockfsm.SessionInfo{ID: id, Nonce: lockfsm.Nonce{1}, TTL: time.Hour,
			Opener: lockfsm.Opener{Instance: by, Capability: rights.Hash()}}
	}
	k.Role(now, Role{Term: 3, Leading: true})
	sessions := []lockfsm.SessionInfo{info(7, one), info(8, other)}
	k.Leads(now, Leadership{Term: 3, Born: true, GraceOver: true, Sessions: sessions})
	attach := func(from nodeid.ID, id lockfsm.SessionID, epoch lockfsm.Epoch) {
		c := lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: epoch, Number: 1, Nonce: lockfsm.Nonce{1}}
		k.ReceiveFrom(now, Sender{ID: from, Rights: rights}, nil, c.Append(nil))
	}
	turn := func(want ...lockfsm.Epoch) {
		t.Helper()
		kinds, epochs = nil, nil
		if k.Turn(now, to); len(epochs) != len(want) || len(want) > 0 && epochs[0] != want[0] {
			t.Fatalf("the epochs %v are proposed, want %v", epochs, want)
		}
		if err := k.Check(); err != nil {
			t.Fatal(err)
		}
	}
	attach(one, 7, 1)
	turn(1)
	for epoch := range lockfsm.Epoch(100) {
		attach(one, 7, 2+epoch)
	}
	release := lockfsm.Command{Kind: lockfsm.Release, Session: 7, Epoch: 101, Number: 1}
	k.ReceiveFrom(now, Sender{ID: one, Rights: rights}, nil, release.Append(nil))
	turn()
	attach(other, 8, 50)
	turn(50)
	const listed = 5000
	k.Applied(now, []lockfsm.Result{{Kind: lockfsm.Attach, Code: lockfsm.Done, Session: 7, Epoch: 1,
		Nonce: lockfsm.Nonce{1}, States: make([]lockfsm.Change, listed)}})
	turn()
	if at := k.Next(); at != now.Add((listed-attachFree)*each) {
		t.Errorf("the next turn is due %v later", at.Sub(now))
	}
	now = now.Add(listed * each)
	turn(101, 101)
	if kinds[0] != lockfsm.Attach || kinds[1] != lockfsm.Release {
		t.Errorf("proposed in the order %v", kinds)
	}
	if len(k.paces.held) > 0 || k.queue.bytes != 0 {
		t.Errorf("%d runs are held, %d bytes are queued", len(k.paces.held), k.queue.bytes)
	}
}
