package keeper

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Outlets execute the output of a Core. All functions are required. The goroutine that owns the
// core calls them. They must not block or call the core.
type Outlets struct {
	// Propose passes one batch of commands to the log, which must propose it in the given term or
	// not at all. It owns the bytes afterwards. It returns false if the batch will not be proposed.
	Propose func(term uint64, commands []byte) bool
	// Confirm requests a round in which a quorum confirms the leadership. Core.Confirmed must be
	// called when the round is done.
	Confirm func(term, round uint64)
	// Reply passes one frame of replies to the transport, or to the instance's own client, and owns
	// the bytes afterwards. It returns an error if the frame will not be sent.
	Reply func(to nodeid.ID, replies []byte) error
	// WallUnixMS returns the wall clock in Unix milliseconds. It is only for display.
	WallUnixMS func() int64
}

// Turn completes a turn after its inputs. It advances the time and executes the output of the core.
func (k *Core) Turn(now clock.Time, to *Outlets) {
	k.Tick(now)
	if term, blob := k.Proposal(to.WallUnixMS()); blob != nil {
		k.Proposed(to.Propose(term, blob))
	}
	if term, round, ok := k.Round(); ok {
		to.Confirm(term, round)
	}
	if k.group.led && k.searches.ask(now) {
		to.Confirm(k.role.Term, SearchRound|k.rounds.next())
	}
	for _, r := range k.Replies() {
		k.Replied(now, r.Peer, to.send(r))
	}
}

func (to *Outlets) send(r PeerReplies) bool {
	for _, frame := range r.Frames {
		if to.Reply(r.Peer, frame) != nil {
			return false
		}
	}
	return true
}
