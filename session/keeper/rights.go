package keeper

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file checks the rights of peers that are not full instances. The state machine checks them,
// too, with the rights that Open has given the session: it knows all keys of a hold that an Acquire
// resumes. The check here names the key, and keeps refused requests out of the log.

// mayAcquire reports whether a peer may lock each key that an Acquire names. Otherwise it sends the
// peer a ReplyForbidden.
func (k *Core) mayAcquire(p *peerState, command []byte) bool {
	c, err := lockfsm.Decode(command)
	if err != nil {
		return true // the state machine refuses a malformed command
	}
	keys := append([]string{c.Key}, c.Keys...)
	for _, key := range keys {
		if !p.rights.Allows(capability.Lock, key) {
			k.peers.reply(p, &session.Reply{
				Kind: session.ReplyForbidden, Session: c.Session, Epoch: c.Epoch, Number: c.Number,
				Key: []byte(key), Value: []byte(p.rights.For()), Code: lockfsm.NotAllowed,
			})
			return false
		}
	}
	return true
}

// forbid answers a request that the state machine has refused, without the keys of the hold: the
// session may have no right to see them.
func (k *Core) forbid(a *attachment, r *lockfsm.Result) {
	k.peers.reply(a.peer, &session.Reply{
		Kind: session.ReplyForbidden, Session: r.Session, Epoch: r.Epoch, Number: r.Number,
		Value: []byte(a.rights.For()), Code: r.Code,
	})
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
