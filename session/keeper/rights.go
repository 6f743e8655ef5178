package keeper

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file decides which commands the keeper refuses from peers that are not full instances. Only
// Acquire needs a right: the other commands that clients may send end their own request or session.

// mayAcquire reports whether a peer may lock each key of an Acquire. If it may not, mayAcquire
// reports that to the peer.
func (k *Core) mayAcquire(p *peerState, command []byte) bool {
	c, err := lockfsm.Decode(command)
	if err != nil {
		return true // the state machine refuses it
	}
	keys := append([]string{c.Key}, c.Keys...)
	for _, key := range keys {
		if !p.rights.Allows(capability.Lock, key) {
			k.reply(p, &session.Reply{
				Kind: session.ReplyForbidden, Session: c.Session, Epoch: c.Epoch, Number: c.Number,
				Key: []byte(key), Value: []byte(p.rights.For()),
			})
			return false
		}
	}
	return true
}

// shownTo returns the form of a circle that a peer may see. Links with keys that the peer has no
// right to see are replaced by one link with their number.
func shownTo(rights *capability.Capability, circle []lockfsm.Link) []lockfsm.Link {
	if rights == nil {
		return circle
	}
	var shown []lockfsm.Link
	hidden := 0
	for _, link := range circle {
		if rights.Sees(link.Key) {
			shown = append(shown, link)
		} else {
			hidden++
		}
	}
	if hidden > 0 {
		shown = append(shown, lockfsm.Link{Key: fmt.Sprintf("%d outside these rights", hidden)})
	}
	return shown
}
