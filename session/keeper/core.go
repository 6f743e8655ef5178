package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Limits and times of a keeper.
const (
	tickEvery       = 100 * time.Millisecond // the shortest time between two checks of the deadlines
	watchBefore     = time.Second            // how long before a deadline the frequent checks begin
	stallAfter      = 300 * time.Millisecond // a longer gap between two turns is a stall
	retryAfter      = 50 * time.Millisecond  // pause after a refused proposal or reply
	roundAgain      = 200 * time.Millisecond // an older unconfirmed round is requested again
	blobBytes       = 1 << 20                // a proposal with this many bytes of commands is full
	replyBytes      = 256 << 10              // a frame with this many bytes of replies is full
	recordBytes     = 64                     // estimated bytes of one more reply in a frame
	queuedBytes     = 32 << 20               // limit of the command bytes that wait to be proposed
	peerBytes       = 8 << 20                // the same limit for the commands of one peer
	peerAttachments = 1024
	peerOpens       = 64
	// peerSessions bounds the sessions of one peer that have not expired.
	peerSessions    = 256
	frameRenewals   = 4096
	maxAskers       = 4096
	expiresPerBlob  = 4096
	sessionsPerTurn = 4096 // the default of Core.Step
)

// Role is the role of this voter in a term, as the voter knows it.
type Role struct {
	Term    uint64
	Leading bool
	Leader  nodeid.Endpoint // this voter if Leading; zero if unknown
}

// Leadership is the state of the group when the leader has applied the first entry of its term.
type Leadership struct {
	Term      uint64
	Sessions  []lockfsm.SessionInfo // ascending by ID; the core keeps the slice and does not change it
	Born      bool
	GraceOver bool
	// BornAt is when this node applied the command Born or restored a later snapshot. It has a
	// meaning only if Born is set.
	BornAt clock.Time
	Grace  time.Duration
	// Unsearched reports that the machine has searches to continue, see lockfsm.Machine.Search.
	Unsearched bool
	// Rules is the version of the rules in force. Zero means 1.
	Rules uint32
}

// Core makes all decisions of a [Keeper]. It has no goroutine, no clock and no random source. The
// caller passes inputs, each with the time, and then calls Turn. It must call Turn again at the
// time that Next returns, or earlier. A Core is not safe for concurrent use.
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

	// Step is the maximum number of sessions that a turn adds, and of deadlines that a turn checks.
	// It must be set before the first input. Zero means sessionsPerTurn.
	Step int

	role   Role
	led    bool // the first entry of this term is applied
	born   bool
	bornAt clock.Time
	grace  time.Duration

	graceOver           bool
	allBound, bornSent  bool
	graceDue, graceSent bool
	adoptDue            *adoption
	raiseDue            uint32 // the requested version; zero means none
	raising             uint32 // the highest version that was proposed in this term
	rules               uint32 // the version in force
	proposeAt           clock.Time
	opens               map[lockfsm.Nonce]pendingOpen
	opened              map[nodeid.ID]int // the number of sessions that each instance has opened
	queue               []commandRun
	queued              int
	blob                []commandRun
	blobExpires         int
	sessions            map[lockfsm.SessionID]*keptSession
	entering            entering // sessions that are not in the map yet
	attachments         map[lockfsm.SessionID]*attachment
	expiries            expiryHeap
	expiriesLeft        bool // some deadlines are left for the next turn
	expireDue           []lockfsm.SessionID
	expiring            int
	now                 clock.Time
	// stalled is the sum of all stalls. The clock of deadlines does not advance during a stall. The
	// attachments in waiters have a renewal that waits for the next round. Those in flying have a
	// renewal that waits for the confirmation of its round.
	stalled         time.Duration
	waiters, flying []*attachment
	round           uint64
	searches        searches
	paces           paces
	roundAt         clock.Time
	peers           map[nodeid.ID]*peerState
	// The list all contains every peer, touched contains the peers of this turn, and owing contains
	// the peers to which an Ended is still to be sent.
	all, touched, owing []*peerState
	askers              []nodeid.ID
	asking              map[nodeid.ID]struct{}
}

// NewCore returns a core without a leader.
func NewCore() *Core {
	return &Core{peers: make(map[nodeid.ID]*peerState), asking: make(map[nodeid.ID]struct{})}
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
	attached := k.throwAway()
	k.role = r
	for _, p := range attached {
		if !r.Leading {
			k.redirect(p)
		}
		k.remember(p.id)
	}
	if !r.Leading && !r.Leader.ID.IsZero() {
		k.tellAskers()
	}
}

func (k *Core) throwAway() (attached []*peerState) {
	for _, p := range k.all {
		if len(p.attachments) > 0 || p.opens > 0 {
			attached = append(attached, p)
		}
		k.touch(p)
		p.attachments, p.opens, p.queued = nil, 0, 0
		p.pending, p.pendingSent = nil, 0
	}
	k.led, k.born, k.graceOver = false, false, false
	k.bornSent, k.graceDue, k.graceSent, k.proposeAt = false, false, false, 0
	k.adoptDue, k.raiseDue, k.raising = nil, 0, 0
	k.opens, k.opened = make(map[lockfsm.Nonce]pendingOpen), make(map[nodeid.ID]int)
	k.queue, k.queued, k.blob, k.blobExpires = nil, 0, nil, 0
	k.entering = entering{}
	k.sessions, k.attachments = make(map[lockfsm.SessionID]*keptSession), make(map[lockfsm.SessionID]*attachment)
	k.expiries, k.expiriesLeft, k.expiring = expiryHeap{}, false, 0
	k.expireDue = nil
	k.searches = searches{}
	k.paces = paces{owners: make(map[lockfsm.Opener]*pace), pending: make(map[attachID]*pace)}
	k.waiters, k.flying, k.owing = nil, nil, nil
	return attached
}

// Leads implements [Keeper.Leads]. Every session gets its full TTL, because the core does not know
// when an earlier leader acknowledged the last renewal.
func (k *Core) Leads(now clock.Time, l Leadership) {
	k.begin(now)
	if l.Term != k.role.Term || !k.role.Leading || k.led {
		return
	}
	k.led = true
	k.born, k.graceOver, k.bornAt, k.grace = l.Born, l.GraceOver, l.BornAt, l.Grace
	k.searches.due, k.rules = l.Unsearched, max(l.Rules, 1)
	k.beginEntering(l.Sessions)
	if k.born {
		k.tellAskers()
	}
}

// AllBound implements [Keeper.AllBound]. After this call, the core proposes Born whenever it leads
// a group that is not founded.
func (k *Core) AllBound(now clock.Time) {
	k.begin(now)
	k.allBound = true
}

type adoption struct {
	ttl      time.Duration
	settings []byte
	budgets  session.Budgets
}

// ProposeAdopt implements [Keeper.ProposeAdopt].
func (k *Core) ProposeAdopt(now clock.Time, term uint64, ttl time.Duration, settings []byte, budgets session.Budgets) {
	k.begin(now)
	if term == k.role.Term && k.role.Leading {
		k.adoptDue = &adoption{ttl, settings, budgets}
	}
}

// ProposeRaise implements [Keeper.ProposeRaise].
func (k *Core) ProposeRaise(now clock.Time, term uint64, version uint32) {
	k.begin(now)
	if term == k.role.Term && k.role.Leading {
		k.raiseDue = version
	}
}

// serving reports whether client commands are accepted. A leader that has not applied the first
// entry of its term does not know the state. Before Born there is no group.
func (k *Core) serving() bool { return k.led && k.born }

// begin is called first for every input. It detects stalls. The duration of a stall does not count
// toward any deadline, because the keeper has not read the renewals that arrived in it. A stall
// that ends before a turn is due needs no correction: the keeper still reads the renewals in time.
func (k *Core) begin(now clock.Time) {
	if gap := now.Sub(k.lookAt()) + tickEvery; k.now != 0 && gap >= stallAfter {
		k.stalled += gap
	}
	k.now = now
}

// lookAt returns when the keeper checks the deadlines next: watchBefore ahead of the earliest
// deadline, and from then on every tickEvery.
func (k *Core) lookAt() clock.Time {
	at := k.now.Add(tickEvery)
	if len(k.expiries) > 0 {
		before := watchBefore
		at = max(at, k.expiries[0].at.Add(k.stalled-before))
	}
	return at
}

// Tick advances the time. It must be called after all inputs that have arrived, because an input
// may renew a session that is due.
func (k *Core) Tick(now clock.Time) {
	k.begin(now)
	k.enterSome()
	if !k.serving() {
		return
	}
	if !k.graceOver && !k.graceSent && now.Sub(k.bornAt) >= k.grace {
		k.graceDue = true
	}
	k.expire()
}

// Next returns the latest time for the next call of Tick. Zero means never.
func (k *Core) Next() clock.Time {
	var next clock.Time
	consider := func(t clock.Time) {
		if next == 0 || t.Before(next) {
			next = t
		}
	}
	if k.led && (len(k.queue) > 0 || k.due()) {
		consider(max(k.now, k.proposeAt))
	}
	for _, p := range k.owing {
		consider(p.retryAt)
	}
	if at := k.nextAttach(); at != 0 {
		consider(at)
	}
	if k.entering.left > 0 {
		consider(k.now)
	}
	if !k.serving() {
		return next
	}
	if k.expiriesLeft {
		consider(k.now)
	}
	if len(k.sessions) > 0 {
		consider(k.lookAt())
	}
	if k.searches.due {
		consider(max(k.now, k.searches.at))
	}
	if len(k.flying) > 0 {
		consider(k.roundAt.Add(roundAgain))
	}
	if !k.graceOver && !k.graceSent && !k.graceDue {
		consider(k.bornAt.Add(k.grace))
	}
	return next
}

func (k *Core) due() bool {
	return k.bornDue() || k.graceDue && !k.graceSent || len(k.expireDue) > 0 ||
		len(k.searches.refuse) > 0 ||
		k.born && (k.adoptDue != nil || k.raiseDue != 0) // the group refuses them before Born
}

func (k *Core) bornDue() bool { return k.allBound && !k.bornSent && !k.born }

// Status describes the core.
func (k *Core) Status() Status {
	return Status{
		Term: k.role.Term, Leading: k.led, Leader: k.role.Leader, Born: k.born, GraceOver: k.graceOver,
		Sessions: len(k.sessions) + k.entering.left, Attachments: len(k.attachments), Expiring: k.expiring,
		Renewals: len(k.waiters) + len(k.flying), Opens: len(k.opens), Peers: len(k.all), Askers: len(k.askers),
	}
}
