package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/stay"
)

// LongestTTL is the longest TTL that a group can grant. A client with a longer one asks for the TTL
// of the group, whatever it is.
const LongestTTL = 10 * time.Minute

// Config configures a Client. Changed, Watch and Logger may be nil. All other fields are required.
// Only the client's goroutine calls Send, Changed and Watch. They must not block. They may call
// methods of the Client that do not wait.
type Config struct {
	Clock clock.Clock
	TTL   time.Duration // the requested TTL; the group may grant a shorter TTL
	// Stays is the largest number of stays that no caller uses, and StayIdle is the time after
	// which such a stay is given back. With zero Stays every stay is given back at once. A large
	// number is divided among parts of the keys.
	Stays    int
	StayIdle time.Duration
	// Send passes one frame to the transport, which owns the bytes afterwards. It returns an error
	// if the frame will not be sent, for example because the queue of the link is full. Send may
	// call Receive and Down.
	Send func(to nodeid.Endpoint, renewals, commands []byte) error
	// Random fills its argument with random bytes for nonces. Two instances must never get the same
	// bytes.
	Random func([]byte)
	// Changed is called with the new phase when the phase has changed.
	Changed func(Phase)
	// Watch is called when the phase, the session, the lease state, the leader or the grace has
	// changed, and when renewals were answered or abandoned. A lease that enters jeopardy or ends
	// is reported in the next turn of the client.
	Watch func(*News)
	// Since is passed to Core.Claims.
	Since  uint64
	Logger *slog.Logger
}

// Client is an instance's side of a session. All methods are safe for concurrent use. The caller of
// New must call Close.
type Client struct {
	config   Config
	deadline atomic.Int64 // the clock.Time at which all holds end; only the goroutine writes it
	safe     atomic.Int64 // the clock.Time at which the lease enters jeopardy; only the goroutine writes it
	ttl      atomic.Int64 // the granted TTL; only the goroutine writes it
	slots    sync.Pool
	kept     keptAll
	idle     idleHolds
	wake     chan struct{}
	ended    chan struct{}

	mu         sync.Mutex // guards the fields up to status
	inbox      []input
	inboxBytes int       // bytes of the leader's replies in the inbox
	otherBytes int       // bytes of all other replies in the inbox
	overflown  bool      // the inbox was full: replies of the leader are dropped until the next turn
	heeded     nodeid.ID // the instance to which the core sends its requests
	closed     bool
	record     []byte // see Rebind
	status     Status // of the core; see counted

	// The goroutine owns the following fields.
	core    *Core
	had     stay.Counts // before the output of this turn, which may be losses
	now     clock.Time
	due     clock.Time    // when the timer was due before this turn; zero means not set
	late    time.Duration // see Status.Late
	told    clock.Time    // when Watch returned last
	spare   []input
	likely  int       // the predicted length of the inbox
	waiting []*waiter // calls that wait for a state of the client
	closing []*waiter // calls that wait for the end of the session
	rebound []*waiter
}

// New starts a client. The client sends nothing before Rebind.
func New(config Config) *Client {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{config: config, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	c.core = NewCore(config.Clock.Now(), config.TTL)
	c.core.Claims(config.Since)
	go c.run()
	return c
}

// Follows passes a claim to Core.Follows, for the next Rebind. The client keeps the slice.
func (c *Client) Follows(former []byte) { c.post(input{kind: inputFollows, bytes: former}) }

// Rebind begins a new incarnation of the instance. After Rebind has returned, no earlier Hold
// reports that it is held. Waiting calls are sent again in a new session. It is opened with the
// record, an opaque description of this instance. With a nil record the client sends nothing until
// the next Rebind. The client keeps both slices. Rebind waits for the client's goroutine, so the
// functions of Config must not call it.
func (c *Client) Rebind(record []byte, targets []nodeid.Endpoint) {
	w := &waiter{result: make(chan error, 1)}
	c.mu.Lock()
	c.record = record
	c.mu.Unlock()
	if c.post(input{kind: inputRebind, bytes: record, targets: targets, waiter: w}) {
		<-w.result
	}
}

// SetTargets sets the voters that the client may ask for the leader. The client keeps the slice.
func (c *Client) SetTargets(targets []nodeid.Endpoint) {
	c.post(input{kind: inputTargets, targets: targets})
}

// Receive accepts replies from a peer, in the order of their arrival. It does not block, and owns
// the bytes afterwards. When the inbox is full, Receive drops replies. After it has dropped
// replies of the leader, the client acts as if the stream had ended.
func (c *Client) Receive(from nodeid.ID, replies []byte) {
	in := input{kind: inputReceive, peer: from, bytes: replies}
	size := inputBytes + len(replies)
	c.mu.Lock()
	defer c.rouse()
	defer c.mu.Unlock()
	waits, limit := &c.inboxBytes, inboxBytes
	if from != c.heeded { // the client will ask again if it needs this reply
		waits, limit = &c.otherBytes, otherBytes
	}
	switch {
	case c.closed || from == c.heeded && c.overflown || from != c.heeded && *waits+size > limit:
		return
	case *waits+size > limit:
		in, c.overflown = input{kind: inputDown, peer: from}, true
	}
	*waits += size
	c.inbox = append(c.inbox, in)
}

// Down reports that the last stream to a peer has ended, or that no stream could be opened. The
// caller must first pass all replies of the peer to Receive. Down does not block.
func (c *Client) Down(peer nodeid.ID) { c.post(input{kind: inputDown, peer: peer}) }

// Leaving reports to the group, now and after every attachment, that this instance is about to
// leave.
func (c *Client) Leaving() { c.post(input{kind: inputLeaving}) }

// Acquire requests a lock and waits for it. A request with try waits only for the answers of stays.
// If ctx ends first, Acquire returns a *WaitError immediately, and a grant that arrives later is
// released. Other errors are ErrClosed, ErrOverloaded, ErrQueueFull, ErrBadKey, ErrRefused,
// ErrUnsupported, a *DeadlockError, and for a request with try also a *HeldError, ErrInGrace,
// ErrNoLeader and ErrKept.
func (c *Client) Acquire(ctx context.Context, key string, try bool) (*Hold, error) {
	h := &Hold{}
	if err := c.AcquireInto(ctx, h, &Request{Key: key, Try: try}); err != nil {
		return nil, err
	}
	return h, nil
}

// AcquireInto is like Acquire, but uses a Hold and a Request of the caller, and accepts Terms. The
// client owns both. After an error the Hold holds no lock and must not be used again.
func (c *Client) AcquireInto(ctx context.Context, h *Hold, r *Request) error {
	if ctx.Err() != nil {
		return &WaitError{Key: r.Key, Err: ContextError(ctx)}
	}
	h.client, h.req = c, r
	r.Caller = h
	if r.Terms != nil && r.Terms.Idle > 0 {
		r.Terms.beats = &beats{}
	}
	h.slot = c.slot()
	c.yield(r)
	if !c.post(input{kind: inputAcquire, hold: h}) {
		return ErrClosed
	}
	var err error
	select {
	case err = <-h.slot:
	case <-ctx.Done():
		c.post(input{kind: inputCancel, hold: h})
		return &WaitError{Key: r.Key, Behind: h.ahead.Load(), Err: ContextError(ctx)}
	}
	c.slots.Put(h.slot)
	if behind := h.ahead.Load(); err == ErrQueueFull && behind != nil {
		return fullQueue(r.Try, behind)
	}
	return err
}

func (c *Client) slot() chan error {
	if s, ok := c.slots.Get().(chan error); ok {
		return s
	}
	return make(chan error, 1)
}

// Status describes the client. The lease state is computed at the time of the call.
func (c *Client) Status() Status {
	c.mu.Lock()
	s := c.status
	c.mu.Unlock()
	s.Lease = lease{ttl: s.TTL, sent: s.Renewed}.state(c.config.Clock.Now())
	return c.counted(s)
}

// IdleHolds describes the holds with Terms.Idle, in no order.
func (c *Client) IdleHolds() []IdleHold { return c.idle.list(c.config.Clock.Now()) }

// Close stops the client and waits for its goroutine. Waiting calls end with ErrClosed, and held
// locks are lost. The group frees the locks only when the lease expires, because code under a lock
// may still run. Close may be called more than once.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.rouse()
	<-c.ended
}

func (c *Client) run() {
	defer close(c.ended)
	alarm := clock.NewTimer(c.config.Clock)
	defer alarm.Stop()
	for {
		select {
		case <-c.wake:
			c.due = alarm.Due() // after a gap both are ready
		case <-alarm.C:
			c.due = alarm.Due()
			alarm.Fired()
		}
		c.gather()
		more, open := c.turn()
		if !open {
			return
		}
		if more {
			c.rouse()
		}
		alarm.Set(c.now, c.next())
	}
}

// turn passes the inbox to the core and executes the core's output.
func (c *Client) turn() (more, open bool) {
	c.mu.Lock()
	inbox, closed := c.inbox, c.closed
	c.inbox, c.inboxBytes, c.otherBytes, c.overflown = c.spare, 0, 0, false
	c.mu.Unlock()
	to := outlets{c}
	c.core.Nonces(to)
	now := c.config.Clock.Now()
	if c.due != 0 {
		c.late, c.due = max(c.late, now.Sub(max(c.due, c.told))), 0
	}
	c.now = now
	for i := range inbox {
		c.dispatch(now, &inbox[i])
	}
	c.spare = session.Emptied(inbox, &c.likely)
	if closed {
		c.keptLeave(ErrClosed)
		for c.core.Turn(now, to) && c.core.due() { // sends the releases
		}
		c.core.End(now, to)
		c.answer(&c.waiting, ErrClosed)
		c.answer(&c.closing, ErrClosed)
		return false, false
	}
	c.keptTurn(now)
	more = c.core.Turn(now, to)
	c.answerDone()
	if c.core.Closed() {
		c.answer(&c.closing, nil)
		c.answer(&c.waiting, ErrClosed)
	}
	return more, true
}

func (c *Client) dispatch(now clock.Time, in *input) {
	switch in.kind {
	case inputStay:
		c.core.Stay(now, in.stay)
	case inputAcquire:
		c.core.Acquire(now, in.hold.req)
	case inputCancel, inputExpired:
		c.idle.remove(in.hold.req)
		c.core.Cancel(now, in.hold.req)
	case inputRelease:
		c.idle.remove(in.hold.req)
		if !c.core.Release(now, in.hold.req) {
			in.hold.settle(ErrLost) // the lock was lost before this goroutine received the release
		}
	case inputDetach:
		c.idle.remove(in.hold.req)
		if !c.core.Detach(now, in.hold.req, string(in.bytes)) {
			in.hold.settle(ErrLost)
		}
	case inputDoubt:
		if since := in.hold.doubted(); since != 0 { // it is not good again since
			c.core.Doubt(now, in.hold.req, since)
		}
	case inputDowngrade:
		c.core.Downgrade(now, in.hold.req, in.hold.lowersTo().modes)
	case inputReceive:
		c.core.Receive(now, in.peer, in.bytes)
	case inputDown:
		c.core.Down(now, in.peer)
	case inputTargets:
		c.core.SetTargets(now, in.targets)
	case inputFollows:
		c.core.Follows(in.bytes)
	case inputRebind:
		c.core.Rebind(now, in.bytes, in.targets)
		c.rebound = append(c.rebound, in.waiter)
	case inputLeaving:
		c.core.Leaving(now)
		c.keptLeave(ErrLeaving)
	case inputWait:
		c.waiting = append(c.waiting, in.waiter)
	case inputCloseSession:
		c.keptDo((*stay.Set).GiveBackUnused)
		if err := c.core.CloseSession(now); err != nil {
			in.waiter.result <- err
			return
		}
		c.closing = append(c.closing, in.waiter)
	case inputHeld:
		in.waiter.held <- c.heldKeys()
	case inputForget:
		c.waiting, c.closing = without(c.waiting, in.waiter), without(c.closing, in.waiter)
	}
}

type outlets struct{ *Client }

func (c outlets) Nonce() (n lockfsm.Nonce) {
	c.config.Random(n[:])
	return n
}

func (c outlets) Lost(o *Outcome) {
	c.idle.remove(o.Request)
	until := c.lostAt()
	if ends := o.Request.limit().time(); ends != 0 {
		until = min(until, ends)
	}
	if o.Why == LossIdle {
		until = min(until, clock.Time(o.Request.idling().idle().ended.Load()))
	}
	o.Request.Caller.(*Hold).end(o.Err, o.Why, until)
}

func (c outlets) Doubt(o *Outcome) {
	o.Request.Caller.(*Hold).end(ErrInJeopardy, LossLease, c.lostAt())
}

func (c outlets) Publish(deadline, safe clock.Time) {
	renewed := c.deadline.Swap(int64(deadline)) != int64(deadline)
	c.safe.Store(int64(safe))
	c.ttl.Store(int64(c.core.ttl()))
	if renewed {
		c.keptRenewed()
	}
	c.answer(&c.rebound, nil)
	c.publish()
}

func (c outlets) Outcome(o *Outcome) {
	h := o.Request.Caller.(*Hold)
	switch o.Kind {
	case OutcomeGranted:
		h.limits = o.Request.limits()
		c.idle.add(o.Request)
		h.slot <- nil
	case OutcomeFailed:
		if held, met := o.Err.(*HeldError); met {
			h.ahead.Store(held)
		}
		h.slot <- o.Err
	case OutcomeReleased:
		h.settle(o.Err)
	case OutcomeWaits:
		h.ahead.Store(o.Behind)
	case OutcomeWanted:
		h.want()
	case OutcomeDowngraded:
		h.downgraded(o.Err)
	case OutcomeGood:
		h.good()
	}
}

func (c outlets) Stay(o *Outcome) {
	c.keptOf(o.Request.Key).do(func(s *stay.Set) { o.Tell(s, c.window()) }, posting{c.Client})
}

func (c outlets) Send(to nodeid.Endpoint, renewals, commands []byte) error {
	return c.config.Send(to, renewals, commands)
}

func (c *Client) publish() {
	status := c.core.Status(c.now)
	c.mu.Lock()
	before := c.status
	if status.Renewed != before.Renewed {
		c.late = 0
	}
	status.Late = c.late
	c.status, c.heeded = status, c.core.finder.target.ID // Receive needs these fields before a frame is sent
	c.mu.Unlock()
	if status.Phase != before.Phase && c.config.Changed != nil {
		c.config.Changed(status.Phase)
	}
	c.tell(before, status)
	if asked := c.config.TTL; status.Session != before.Session && status.Session != 0 && status.TTL < asked &&
		asked <= LongestTTL {
		c.config.Logger.Warn("the group granted a shorter lease than requested", "asked", asked, "ttl", status.TTL)
	}
	if status.Outdated != before.Outdated && status.Outdated != (session.Outdated{}) {
		c.config.Logger.Error(status.Outdated.String())
	}
	if status.Phase == Attached && before.Phase != Attached {
		c.config.Logger.Debug("attached to the leader", "leader", status.Leader.Addr, "session", uint64(status.Session))
	}
}

func (c *Client) tell(before, after Status) {
	if c.config.Watch == nil {
		return
	}
	renewed, unanswered := c.core.takeRenewals()
	if len(renewed) > 0 || unanswered > 0 || after.differs(&before) {
		c.config.Watch(&News{Before: before.counted(c.had), After: c.counted(after), Renewed: renewed,
			Unanswered: unanswered})
		c.told = c.config.Clock.Now()
	}
}
