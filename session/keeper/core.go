package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const (
	stallAfter      = 300 * time.Millisecond // a longer gap between two turns is a stall
	sessionsPerTurn = 4096                   // the default of Core.Step
)

// Role is the role of this voter in a term, as the voter knows it.
type Role struct {
	Term    uint64
	Leading bool
	Leader  nodeid.Endpoint // this voter if Leading; zero if unknown
}

// Core makes all decisions of a [Keeper]. It has no goroutine, no clock and no random source. The
// caller passes inputs, each with the time, and then calls Turn. It must call Turn again at the
// time that Next returns, or earlier. A Core is not safe for concurrent use.
//
// The parts share no field, and no part knows the core.
type Core struct {
	// Vouch reports whether the record of a new session agrees with the connection of a peer with
	// these rights. Vouch must be set before the first input. If Vouch is nil, every record agrees.
	Vouch func(from nodeid.ID, rights *capability.Capability, record []byte) bool

	// Outdated returns why an instance with this record may open no session, or zero. It is not
	// called for peers with a capability, which never have a replica. A nil Outdated refuses none.
	Outdated func(record []byte) session.Outdated

	// Stamp adds information from the certificate to the record of a new session. It is not called
	// for full instances. A nil Stamp leaves the record unchanged.
	Stamp func(rights *capability.Capability, record []byte) []byte

	// Self is the instance of this voter. Its clients learn of each new leader from this keeper, even
	// if they have never asked it. Self must be set before the first input. Zero means none.
	Self nodeid.ID

	// Step is the maximum number of sessions that a turn adds, and of deadlines that a turn checks.
	// It must be set before the first input. Zero means sessionsPerTurn.
	Step int

	role     Role
	group    group
	duties   duties
	opens    map[lockfsm.Nonce]pendingOpen // not applied
	queue    queue
	paces    paces
	leases   leases
	rounds   rounds
	searches searches
	peers    peers
	askers   askers

	now clock.Time
	// stalled is the sum of all stalls. The clock of deadlines does not advance during a stall.
	stalled time.Duration
}

// pendingOpen is an Open that is proposed and not applied.
type pendingOpen struct {
	peer   *peerState
	opener lockfsm.Opener
	life   uint64
}

// NewCore returns a core without a leader.
func NewCore() *Core {
	return &Core{
		peers: peers{byID: make(map[nodeid.ID]*peerState)}, askers: askers{known: make(map[nodeid.ID]struct{})},
	}
}

// Role implements [Keeper.Role]. It discards all queues and ends all attachments. So nothing that
// arrived in one term is proposed or acknowledged in another.
func (k *Core) Role(now clock.Time, r Role) {
	k.begin(now)
	if r == k.role {
		return
	}
	if r.Leading && k.role.Leading && r.Term == k.role.Term {
		k.role = r // only the address of this leader has changed
		return
	}
	attached := k.newTerm()
	if k.role = r; r.Leading {
		k.peers.holdRedirects() // until this leader serves, when tellAskers redirects to it
	}
	for _, p := range attached {
		if !r.Leading {
			k.peers.redirect(p)
		}
		k.askers.remember(p.id)
	}
	if !r.Leading && !r.Leader.ID.IsZero() {
		k.tellAskers()
	}
}

// newTerm discards what belongs to the term that ends.
func (k *Core) newTerm() (attached []*peerState) {
	k.group.follow()
	k.duties.forget()
	k.opens = make(map[lockfsm.Nonce]pendingOpen)
	k.queue, k.leases, k.searches, k.paces = queue{}, newLeases(), searches{}, newPaces()
	k.rounds.forget()
	return k.peers.forget()
}

// Leads implements [Keeper.Leads]. Every session gets its full TTL, because the core does not know
// when an earlier leader acknowledged the last renewal.
func (k *Core) Leads(now clock.Time, l Leadership) {
	k.begin(now)
	if l.Term != k.role.Term || !k.role.Leading || k.group.led {
		return
	}
	k.group.lead(&l)
	k.searches.note(l.Unsearched)
	k.leases.begin(l.Sessions, k.elapsed())
	if k.group.born {
		k.tellAskers()
	}
}

// AllBound implements [Keeper.AllBound]. After this call, the core proposes Born whenever it leads
// a group that is not founded.
func (k *Core) AllBound(now clock.Time) {
	k.begin(now)
	k.duties.allBound = true
}

// ProposeAdopt implements [Keeper.ProposeAdopt].
func (k *Core) ProposeAdopt(now clock.Time, term uint64, ttl time.Duration, settings []byte, budgets session.Budgets) {
	k.begin(now)
	if term == k.role.Term && k.role.Leading {
		k.duties.adopt = &adoption{ttl, settings, budgets}
	}
}

// ProposeRaise implements [Keeper.ProposeRaise].
func (k *Core) ProposeRaise(now clock.Time, term uint64, version uint32) {
	k.begin(now)
	if term == k.role.Term && k.role.Leading {
		k.duties.raise = version
	}
}

// ProposeEnd implements [Keeper.ProposeEnd].
func (k *Core) ProposeEnd(now clock.Time, term uint64, e Ending) {
	k.begin(now)
	if term == k.role.Term && k.group.led {
		k.leases.end(e)
	}
}

// begin is called first for every input. It detects stalls. The duration of a stall does not count
// toward any deadline, because the keeper has not read the renewals that arrived in it. A stall
// that ends before a turn is due needs no correction: the keeper still reads the renewals in time.
func (k *Core) begin(now clock.Time) {
	if gap := now.Sub(k.lookAt()) + tickEvery; k.now != 0 && gap >= stallAfter {
		k.stalled += gap
	}
	k.now = now
}

// elapsed returns the time on the clock of deadlines: the boot-time clock minus all stalls.
func (k *Core) elapsed() clock.Time { return k.now.Add(-k.stalled) }

// lookAt returns when the keeper checks the deadlines next: watchBefore ahead of the earliest
// deadline, and from then on every tickEvery.
func (k *Core) lookAt() clock.Time {
	at := k.now.Add(tickEvery)
	if len(k.leases.expiries) > 0 {
		at = max(at, k.leases.expiries[0].at.Add(k.stalled-watchBefore))
	}
	return at
}

// Tick advances the time. It must be called after all inputs that have arrived, because an input
// may renew a session that is due.
func (k *Core) Tick(now clock.Time) {
	k.begin(now)
	k.leases.entering.some(k.step(), k.leases.enter)
	if !k.group.serving() {
		return
	}
	if !k.group.graceOver && !now.Before(k.group.graceEnds()) {
		k.duties.endGrace()
	}
	k.leases.endClaimed(k.group.id)
	k.leases.expire(k.elapsed(), k.step(), k.peers.renewing)
}

func (k *Core) step() int {
	if k.Step > 0 {
		return k.Step
	}
	return sessionsPerTurn
}

// Next returns the latest time for the next call of Tick. Zero means never.
func (k *Core) Next() clock.Time {
	var next clock.Time
	consider := func(t clock.Time) {
		if next == 0 || t.Before(next) {
			next = t
		}
	}
	if k.group.led && (len(k.queue.runs) > 0 || k.due()) {
		consider(max(k.now, k.queue.retryAt))
	}
	for _, p := range k.peers.owing {
		consider(p.retryAt)
	}
	if at := k.paces.next(k.now); at != 0 {
		consider(at)
	}
	if k.leases.entering.left > 0 {
		consider(k.now)
	}
	if !k.group.serving() {
		return next
	}
	if k.leases.left {
		consider(k.now)
	}
	if len(k.leases.sessions) > 0 {
		consider(k.lookAt())
	}
	if k.searches.wants() {
		consider(max(k.now, k.searches.at))
	}
	if len(k.rounds.flying) > 0 {
		consider(k.rounds.at.Add(roundAgain))
	}
	if !k.group.graceOver && !k.duties.graceSent && !k.duties.graceDue {
		consider(k.group.graceEnds())
	}
	return next
}

func (k *Core) due() bool {
	return k.duties.due(k.group.born) || len(k.leases.due) > 0 || len(k.searches.refuse) > 0
}

// tellAskers redirects the clients of this voter's own instance, and all peers that have asked, to
// the current leader. No stream to a leader ends if it has only stopped, so a client attached to it
// would otherwise wait for two answers before it asks another voter.
func (k *Core) tellAskers() {
	if !k.Self.IsZero() {
		k.peers.redirect(k.peers.peer(k.Self))
	}
	for _, id := range k.askers.order {
		k.peers.redirect(k.peers.peer(id))
	}
}

// Searched implements [Keeper.Searched].
func (k *Core) Searched(now clock.Time, term uint64, found lockfsm.Search) {
	k.begin(now)
	if term == k.role.Term && k.group.led {
		k.searches.answered(now, found)
	}
}

// Replies returns the replies to send, in order. Replied must be called once for each peer.
func (k *Core) Replies() []PeerReplies {
	return k.peers.replies(k.now, k.role.Term, k.role.Leader)
}

// Replied reports whether the transport accepted all frames for a peer. Otherwise all attachments
// of the peer end. Their clients are informed when the transport accepts frames again.
func (k *Core) Replied(now clock.Time, id nodeid.ID, accepted bool) {
	k.peers.replied(now, id, accepted)
}

// Dropped reports that a frame of the peer was dropped, because too many bytes wait. The peer's
// attachments end.
func (k *Core) Dropped(now clock.Time, id nodeid.ID) {
	k.begin(now)
	if p := k.peers.byID[id]; p != nil {
		k.peers.endAll(p, session.EndOverloaded)
	}
}

// Down implements [Keeper.Down]. The attachments of the peer end, and its sessions remain until
// their leases end.
func (k *Core) Down(now clock.Time, id nodeid.ID) {
	k.begin(now)
	k.askers.forget(id)
	k.peers.down(id)
}

// Status describes the core.
func (k *Core) Status() Status {
	return Status{
		Term: k.role.Term, Leading: k.group.led, Leader: k.role.Leader, Born: k.group.born, GraceOver: k.group.graceOver,
		Sessions: k.leases.count(), Attachments: len(k.peers.attachments), Expiring: k.leases.expiring,
		Renewals: len(k.rounds.waiters) + len(k.rounds.flying), Opens: len(k.opens),
		Peers: len(k.peers.all), Askers: len(k.askers.order),
	}
}
