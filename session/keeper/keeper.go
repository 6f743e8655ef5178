package keeper

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Limits of the inbox.
const (
	inboxBytes     = 64 << 20 // bytes of all frames
	peerInboxBytes = 8 << 20  // bytes of one peer's frames, so that a flood leaves room for others
	inputBytes     = 128      // counted for each frame in addition to its content
)

// Config configures a Keeper. Only the keeper's goroutine calls the functions. They must not block,
// and may call the keeper's methods.
type Config struct {
	Clock clock.Clock
	Outlets
	// Self becomes Core.Self.
	Self nodeid.ID
	// Vouch becomes Core.Vouch.
	Vouch func(from nodeid.ID, rights *capability.Capability, record []byte) bool
	// Outdated becomes Core.Outdated.
	Outdated func(record []byte) session.Outdated
	// Stamp becomes Core.Stamp.
	Stamp func(rights *capability.Capability, record []byte) []byte
}

// Keeper is the leader's side of the session protocol. All methods are safe for concurrent use, and
// take effect in the order of the calls. Only Left and Close block. The caller of New must call
// Close.
type Keeper struct {
	config Config
	wake   chan struct{}
	ended  chan struct{}

	mu     sync.Mutex // guards inbox, closed and status; never held while waiting
	inbox  inbox
	closed bool
	status Status

	// The goroutine owns the following fields.
	core  *Core
	now   clock.Time
	spare inbox
}

// inbox holds the inputs of a keeper since its last turn. Results are copied into slices that are
// reused.
type inbox struct {
	inputs  []input
	results []lockfsm.Result
	changes []lockfsm.Change
	bytes   int // size of all frames
	shares  map[nodeid.ID]share
	likely  struct{ inputs, results, changes int } // see session.Emptied
}

type share struct {
	bytes   int
	dropped bool // later frames of the peer in this turn are dropped
}

type inputKind uint8

const (
	inputReceive inputKind = iota
	inputDropped
	inputDown
	inputRole
	inputLeads
	inputApplied
	inputYield
	inputConfirmed
	inputSearched
	inputAllBound
	inputAdopt
	inputRaise
	inputEnd
	inputLeft
)

type input struct {
	kind               inputKind
	peer               nodeid.ID
	by                 Sender
	renewals, commands []byte
	term, round        uint64
	from, to           int // the range of the results
	role               *Role
	leads              *Leadership
	adopt              *adoption
	version            uint32
	ending             *Ending
	found              *lockfsm.Search
	left               *leftQuestion
	session            lockfsm.SessionID
	number             lockfsm.Number
}

// leftQuestion is a call of Left. answer has a buffer of one.
type leftQuestion struct {
	sessions []lockfsm.SessionID
	answer   chan []time.Duration
}

// New starts a keeper without a leader.
func New(config Config) *Keeper {
	core := NewCore()
	core.Self = config.Self
	core.Vouch, core.Outdated, core.Stamp = config.Vouch, config.Outdated, config.Stamp
	k := &Keeper{config: config, core: core, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go k.run()
	return k
}

func (k *Keeper) post(in input) {
	k.put(func(b *inbox) { b.inputs = append(b.inputs, in) })
}

// put changes the inbox. The first input wakes the goroutine, which processes the whole inbox.
func (k *Keeper) put(change func(*inbox)) {
	k.mu.Lock()
	first := len(k.inbox.inputs) == 0
	if !k.closed {
		change(&k.inbox)
	}
	k.mu.Unlock()
	if first {
		k.rouse()
	}
}

func (k *Keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// ReceiveFrom accepts one frame of a peer, and owns the bytes afterwards. It must be called in the
// order in which the frames arrived.
func (k *Keeper) ReceiveFrom(by Sender, renewals, commands []byte) {
	k.put(func(b *inbox) { b.receive(by, renewals, commands) })
}

// Down reports that the last stream to a peer has ended. The caller must first pass all frames of
// the peer to Receive.
func (k *Keeper) Down(peer nodeid.ID) { k.post(input{kind: inputDown, peer: peer}) }

// Role reports a change of the term, of the leader, or of this voter's role.
func (k *Keeper) Role(r Role) { k.post(input{kind: inputRole, role: &r}) }

// Leads reports that the first entry of this keeper's term is applied. Calls of Leads and Applied
// must be in the order of the log. The caller must not change l.Sessions afterwards.
func (k *Keeper) Leads(l Leadership) { k.post(input{kind: inputLeads, leads: &l}) }

// Confirmed reports that a round of Confirm is done and that all entries that were committed
// before the round are applied. Calls of Confirmed and Applied must be in the order of the log.
func (k *Keeper) Confirmed(term, round uint64) {
	k.post(input{kind: inputConfirmed, term: term, round: round})
}

// Searched reports the result of Machine.Search, which a round with SearchRound has requested.
func (k *Keeper) Searched(term uint64, found lockfsm.Search) {
	k.post(input{kind: inputSearched, term: term, found: &found})
}

// AllBound reports that every instance on the group's list is bound to the group.
func (k *Keeper) AllBound() { k.post(input{kind: inputAllBound}) }

// ProposeAdopt makes the keeper propose new settings of the group, if it leads in the given term. A
// zero TTL, nil settings and zero budgets mean no change. The TTL is for future sessions only. A
// later call replaces a change that is not proposed yet. The change is lost when the term ends, and
// the caller must repeat the call in the next term. The caller must not change the slice
// afterwards.
func (k *Keeper) ProposeAdopt(term uint64, ttl time.Duration, settings []byte, budgets session.Budgets) {
	k.post(input{kind: inputAdopt, term: term, adopt: &adoption{ttl, settings, budgets}})
}

// ProposeRaise is like ProposeAdopt, but for a higher version of the rules. A replica with older
// software stops when it applies the change.
func (k *Keeper) ProposeRaise(term uint64, version uint32) {
	k.post(input{kind: inputRaise, term: term, version: version})
}

// ProposeEnd makes the keeper propose the end of a session before its TTL has passed, for the Cause
// of e, if it leads in the given term and has passed Leads. Otherwise nothing happens, and the
// caller must repeat the call. From then on, no renewal of the session is acknowledged. The caller
// must not change the slices afterwards.
func (k *Keeper) ProposeEnd(term uint64, e Ending) {
	k.post(input{kind: inputEnd, term: term, ending: &e})
}

// Applied accepts the result of an applied command and copies it. It must be called in the order of
// the log.
func (k *Keeper) Applied(result *lockfsm.Result) {
	k.put(func(b *inbox) { b.applied(result) })
}

// Yield asks a session to release the stay with a number if it is free, because a request is about
// to wait for it. It must be called after Applied for the grant of the stay.
func (k *Keeper) Yield(id lockfsm.SessionID, n lockfsm.Number) {
	k.post(input{kind: inputYield, session: id, number: n})
}

func (b *inbox) applied(result *lockfsm.Result) {
	b.results = append(b.results, *result)
	b.last(&b.results[len(b.results)-1])
	if n := len(b.inputs); n > 0 && b.inputs[n-1].kind == inputApplied {
		b.inputs[n-1].to = len(b.results)
		return
	}
	b.inputs = append(b.inputs, input{kind: inputApplied, from: len(b.results) - 1, to: len(b.results)})
}

// receive adds a frame. If there is no room, it adds an inputDropped and ignores further frames
// of the peer until the next turn.
func (b *inbox) receive(by Sender, renewals, commands []byte) {
	from := by.ID
	if b.shares == nil {
		b.shares = make(map[nodeid.ID]share)
	}
	s := b.shares[from]
	if s.dropped {
		return
	}
	in := input{kind: inputReceive, by: by, renewals: renewals, commands: commands}
	size := inputBytes + len(renewals) + len(commands)
	if s.bytes+size > peerInboxBytes || b.bytes+size > inboxBytes {
		in, size, s.dropped = input{kind: inputDropped, peer: from}, inputBytes, true
	}
	s.bytes += size
	b.bytes += size
	b.shares[from] = s
	b.inputs = append(b.inputs, in)
}

// b.last copies the parts of a result that share memory with the state machine, so that the result
// stays valid.
func (b *inbox) last(r *lockfsm.Result) {
	states, fired := r.States, r.Fired
	if r.Holder != nil || r.Circle != nil || r.Evicted != nil {
		r.States, r.Fired = nil, nil
		*r = r.Clone()
	}
	r.States, r.Fired = b.copyChanges(states), b.copyChanges(fired)
}

func (b *inbox) copyChanges(changes []lockfsm.Change) []lockfsm.Change {
	if len(changes) == 0 {
		return nil
	}
	from := len(b.changes)
	b.changes = append(b.changes, changes...)
	return b.changes[from:len(b.changes):len(b.changes)]
}

func (b *inbox) reset() {
	clear(b.shares)
	b.inputs, b.results = session.Emptied(b.inputs, &b.likely.inputs), session.Emptied(b.results, &b.likely.results)
	b.changes = session.Emptied(b.changes, &b.likely.changes)
	b.bytes = 0
}

// Left returns, for each session, the time until the session expires if no further renewal arrives.
// Zero means that the session is unknown or that the keeper does not lead. Left waits for the
// keeper's goroutine, and returns nil if the goroutine or ctx has ended.
func (k *Keeper) Left(ctx context.Context, sessions []lockfsm.SessionID) []time.Duration {
	q := &leftQuestion{sessions: sessions, answer: make(chan []time.Duration, 1)}
	k.post(input{kind: inputLeft, left: q})
	select {
	case left := <-q.answer:
		return left
	case <-ctx.Done():
	case <-k.ended:
	}
	return nil
}

// Status describes the keeper.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Close stops the keeper and waits for its goroutine. It may be called more than once.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.rouse()
	<-k.ended
}

// run does not yield before a turn to collect more inputs, because the log and the senders batch
// its output anyway.
func (k *Keeper) run() {
	defer close(k.ended)
	alarm := clock.NewTimer(k.config.Clock)
	defer alarm.Stop()
	for {
		select {
		case <-k.wake:
		case <-alarm.C:
			alarm.Fired()
		}
		if !k.turn() {
			return
		}
		alarm.Set(k.now, k.core.Next())
	}
}

// turn processes the whole inbox before it advances the time. So no session expires while its
// renewal is in the inbox.
func (k *Keeper) turn() (open bool) {
	k.mu.Lock()
	in, closed := k.inbox, k.closed
	k.inbox = k.spare
	k.mu.Unlock()
	if closed {
		return false
	}
	now := k.config.Clock.Now()
	k.now = now
	for i := range in.inputs {
		k.dispatch(now, &in, &in.inputs[i])
	}
	in.reset()
	k.spare = in
	k.core.Turn(now, &k.config.Outlets)
	status := k.core.Status()
	k.mu.Lock()
	k.status = status
	k.mu.Unlock()
	return true
}

func (k *Keeper) dispatch(now clock.Time, b *inbox, in *input) {
	switch in.kind {
	case inputReceive:
		k.core.ReceiveFrom(now, in.by, in.renewals, in.commands)
	case inputDropped:
		k.core.Dropped(now, in.peer)
	case inputDown:
		k.core.Down(now, in.peer)
	case inputRole:
		k.core.Role(now, *in.role)
	case inputLeads:
		k.core.Leads(now, *in.leads)
	case inputApplied:
		k.core.Applied(now, b.results[in.from:in.to])
	case inputYield:
		k.core.Yield(now, in.session, in.number)
	case inputConfirmed:
		k.core.Confirmed(now, in.term, in.round)
	case inputSearched:
		k.core.Searched(now, in.term, *in.found)
	case inputAllBound:
		k.core.AllBound(now)
	case inputAdopt:
		k.core.ProposeAdopt(now, in.term, in.adopt.ttl, in.adopt.settings, in.adopt.budgets)
	case inputRaise:
		k.core.ProposeRaise(now, in.term, in.version)
	case inputEnd:
		k.core.ProposeEnd(now, in.term, *in.ending)
	case inputLeft:
		in.left.answer <- k.core.Left(now, in.left.sessions)
	}
}
