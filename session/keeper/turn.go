package keeper

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Outlets carry out what the turns of a Core decide. All are required. The goroutine that owns the
// core calls them. They must not block or call the core.
type Outlets struct {
	// Propose passes one blob of commands to the log, to be proposed in the given term or never, and
	// owns the bytes afterwards. False means that the blob will not be proposed.
	Propose func(term uint64, commands []byte) bool
	// Confirm requests a round in which a quorum confirms the lead. Core.Confirmed is called when it
	// is done.
	Confirm func(term, round uint64)
	// Reply passes one frame of replies to the transport, or to the instance's own client, and owns
	// the bytes afterwards. An error means that the frame will not be sent.
	Reply func(to nodeid.ID, replies []byte) error
	// WallUnixMS reads the wall clock. Only people read its values.
	WallUnixMS func() int64
}

// Turn advances the time after the inputs of a turn, and carries out what the core wants.
func (k *Core) Turn(now clock.Time, to *Outlets) {
	k.Tick(now)
	if term, blob := k.Proposal(to.WallUnixMS()); blob != nil {
		k.Proposed(to.Propose(term, blob))
	}
	if term, round, ok := k.Round(); ok {
		to.Confirm(term, round)
	}
	for _, r := range k.Replies() {
		k.Replied(now, r.Peer, to.send(r))
	}
}

func (to *Outlets) send(r PeerReplies) bool {
	for _, frame := range r.Frames {
		if to.Reply(r.Peer, frame) != nil {
			return false // the attachments of the peer end
		}
	}
	return true
}
