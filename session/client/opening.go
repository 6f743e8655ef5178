package client

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// maxNonceTo bounds the instances that are remembered as asked for one session.
const maxNonceTo = 16

// opening has the nonces with which the client opens its sessions.
type opening struct {
	nonce    lockfsm.Nonce // of the session to be opened; zero means none
	sent     clock.Time    // when the nonce was first sent; zero means never
	to       []nodeid.ID   // the instances that got the nonce; answers of others are ignored
	proof    lockfsm.Nonce // the nonce of the current session
	spare    lockfsm.Nonce
	since    uint64 // see Claims
	former   []byte // see Follows
	outdated session.Outdated
}

// Claims makes each Attach claim that the earlier starts of this instance, from the given one on,
// have ended. So the leader ends their sessions at once. The claim stays true, and is repeated
// because the leader can change before it has ended them. Zero claims nothing.
func (c *Core) Claims(since uint64) { c.opening.since = since }

// Follows makes each Attach claim, as Claims does, that another instance has ended, see
// session.ClaimFormer. The claim is for one group, so it must be called before Rebind. Nil claims
// nothing. The core keeps the slice.
func (c *Core) Follows(former []byte) { c.opening.former = former }

// begin takes the spare nonce for a new session.
func (o *opening) begin() { o.nonce, o.sent, o.to, o.spare = o.spare, 0, nil, lockfsm.Nonce{} }

func (o *opening) asks(now clock.Time, peer nodeid.ID) {
	if o.sent == 0 {
		o.sent = now
	}
	if !slices.Contains(o.to, peer) {
		o.to = append(o.to[max(0, len(o.to)-maxNonceTo+1):], peer)
	}
}

// answers reports whether an answer with the nonce, of the peer, is one to the client's question.
func (o *opening) answers(peer nodeid.ID, nonce lockfsm.Nonce) bool {
	return o.sent != 0 && nonce == o.nonce && slices.Contains(o.to, peer)
}

// succeeded makes the nonce the proof of the new session. It returns when the nonce was first sent.
func (o *opening) succeeded() (sent clock.Time) {
	o.proof, sent = o.nonce, o.sent
	o.drop()
	return sent
}

// drop forgets the nonce.
func (o *opening) drop() { o.nonce, o.sent = lockfsm.Nonce{}, 0 }

// noteOutdated notes why the leader opens no session for this build, or that it does.
func (o *opening) noteOutdated(why session.Outdated) { o.outdated = why }

// end forgets the session.
func (o *opening) end() {
	o.drop()
	o.proof = lockfsm.Nonce{}
}

// WantsNonce reports whether the core needs a fresh nonce before the next Flush.
func (c *Core) WantsNonce() bool { return c.opening.spare == lockfsm.Nonce{} }

// GiveNonce sets the nonce for the next session.
func (c *Core) GiveNonce(n lockfsm.Nonce) { c.opening.spare = n }
