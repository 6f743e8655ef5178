package keeper

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// idleKeeper returns a keeper without a goroutine. The test runs its turns.
func idleKeeper() *Keeper {
	return &Keeper{core: NewCore(), wake: make(chan struct{}, 1), config: Config{
		Clock: new(clock.Manual), Outlets: Outlets{Propose: func(uint64, []byte) bool { return true },
			Confirm: func(uint64, uint64) {},
			Reply:   func(nodeid.ID, []byte) error { return nil }, WallUnixMS: func() int64 { return 1 }},
	}}
}

// TestEachTurnHasTheWholeInbox checks that the counts of the inbox begin at zero in each turn.
// Otherwise the keeper would soon drop every frame.
func TestEachTurnHasTheWholeInbox(t *testing.T) {
	slow.UnderRace(t)
	large := make([]byte, peerInboxBytes-inputBytes-100)
	for name, row := range map[string]struct {
		peers, frames      uint64 // the number of frames of each peer in a turn
		renewals, commands []byte
		dropped            int // the number of inputDropped in each turn
	}{
		"commands of a peer": {peers: 1, frames: 1, commands: large},
		"renewals of a peer": {peers: 1, frames: 1, renewals: large},
		"both of a peer": {peers: 1, frames: 1, renewals: large[:len(large)/2],
			commands: large[len(large)/2:]},
		"small frames of a peer":       {peers: 1, frames: peerInboxBytes / inputBytes},
		"all peers":                    {peers: 8, frames: 1, commands: large},
		"a peer that floods":           {peers: 1, frames: 4, commands: large, dropped: 1},
		"a peer that floods by number": {peers: 1, frames: 3 * peerInboxBytes / inputBytes, dropped: 1},
		"more than all":                {peers: 12, frames: 1, commands: large, dropped: 4},
	} {
		t.Run(name, func(t *testing.T) {
			k := idleKeeper()
			for turn := range 12 {
				for range row.frames {
					for p := range row.peers {
						k.ReceiveFrom(Sender{ID: nodeidtest.ID(p + 1), Rights: &capability.Capability{}}, row.renewals, row.commands)
					}
				}
				k.Applied(&lockfsm.Result{Kind: lockfsm.Born, States: []lockfsm.Change{{}}})
				dropped, frames := 0, 0
				for _, in := range k.inbox.inputs {
					switch in.kind {
					case inputDropped:
						dropped++
					case inputReceive:
						frames++
					}
				}
				if dropped != row.dropped || dropped == 0 && frames != int(row.peers*row.frames) ||
					k.inbox.bytes > inboxBytes+int(row.peers)*inputBytes {
					t.Fatalf("turn %d: %d frames are taken in, %d notes that one was dropped, want %d; %d bytes",
						turn, frames, dropped, row.dropped, k.inbox.bytes)
				}
				if !k.turn() {
					t.Fatal("closed")
				}
				for _, b := range []*inbox{&k.inbox, &k.spare} {
					if len(b.inputs)+len(b.results)+len(b.changes)+len(b.shares)+b.bytes != 0 {
						t.Fatalf("turn %d leaves %d inputs, %d results, %d changes, the shares of %d peers and %d bytes",
							turn, len(b.inputs), len(b.results), len(b.changes), len(b.shares), b.bytes)
					}
					for _, in := range b.inputs[:cap(b.inputs)] {
						if !reflect.ValueOf(in).IsZero() {
							t.Fatalf("turn %d still holds a frame of %v", turn, in.peer)
						}
					}
					for _, r := range b.results[:cap(b.results)] {
						if !reflect.ValueOf(r).IsZero() {
							t.Fatalf("turn %d still holds the result of a command: %v", turn, r.Kind)
						}
					}
				}
			}
		})
	}
}

// TestAppliedResultsAreCopied checks that the keeper copies a result, because the machine reuses
// the memory of its results.
func TestAppliedResultsAreCopied(t *testing.T) {
	k := idleKeeper()
	changes := make([]lockfsm.Change, 3)
	for i := range 50 {
		for j := range changes {
			changes[j].Session = lockfsm.SessionID(i*10 + j)
		}
		k.Applied(&lockfsm.Result{Kind: lockfsm.Acquire, States: changes[:1], Fired: changes[1:]})
		clear(changes)
	}
	if n := len(k.inbox.inputs); n != 1 {
		t.Errorf("%d inputs for results that follow each other", n)
	}
	for i, r := range k.inbox.results {
		if len(r.States) != 1 || len(r.Fired) != 2 || r.States[0].Session != lockfsm.SessionID(i*10) ||
			r.Fired[1].Session != lockfsm.SessionID(i*10+2) {
			t.Fatalf("result %d has become %+v", i, r)
		}
	}
}

func TestAppliedResultsPointToNothingOfTheMachine(t *testing.T) {
	k := idleKeeper()
	for _, r := range []lockfsm.Result{
		{Holder: &lockfsm.Holder{}}, {Evicted: &lockfsm.Eviction{}}, {Circle: []lockfsm.Link{{}}},
	} {
		record := []byte("before")
		switch {
		case r.Holder != nil:
			r.Holder.Record = record
		case r.Evicted != nil:
			r.Evicted.Record = record
		default:
			r.Circle[0].Record = record
		}
		k.Applied(&r)
		copy(record, "after!")
	}
	all := k.inbox.results
	got := fmt.Sprintf("%s %s %s", all[0].Holder.Record, all[1].Evicted.Record, all[2].Circle[0].Record)
	if got != "before before before" {
		t.Errorf("what the results point to has become %q", got)
	}
}

func TestAppliedResultsKeepTheirPlace(t *testing.T) {
	k := idleKeeper()
	k.Down(nodeidtest.ID(1))
	for range 2 {
		for range 3 {
			k.Applied(&lockfsm.Result{Kind: lockfsm.Acquire})
		}
		k.ReceiveFrom(Sender{ID: nodeidtest.ID(2)}, nil, []byte("x"))
	}
	var order []inputKind
	results := 0
	for _, in := range k.inbox.inputs {
		order = append(order, in.kind)
		if in.kind == inputApplied {
			if in.from != results || in.to != results+3 {
				t.Errorf("of the results %d to %d are handed on here, want three from %d", in.from, in.to, results)
			}
			results = in.to
		}
	}
	if want := []inputKind{inputDown, inputApplied, inputReceive, inputApplied, inputReceive}; !slices.Equal(order,
		want) {
		t.Errorf("the inputs are %v, want %v", order, want)
	}
}
