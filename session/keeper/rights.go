package keeper

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file checks the rights of peers that are not full instances. Only Acquire needs a right.

// mayAcquire reports whether a peer may lock each key of an Acquire. Otherwise it sends the peer a
// ReplyForbidden.
func (k *Core) mayAcquire(p *peerState, command []byte) bool {
	c, err := lockfsm.Decode(command)
	if err != nil {
		return true // the state machine refuses a malformed command
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

// shownTo returns a cycle without the links whose keys a peer with these rights may not see. If
// links were left out, one further link contains their number.
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
		shown = append(shown, lockfsm.Link{Key: fmt.Sprintf("%d more outside these rights", hidden)})
	}
	return shown
}
