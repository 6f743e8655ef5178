package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Hold is a lock that was granted to one call of [Client.Acquire]. It is safe for concurrent use.
//
// When a hold is lost or in doubt, the client first sets Hold.over and then publishes a later
// deadline. So a renewal cannot make a lost hold valid again. It makes a hold in doubt valid only
// after the core has confirmed the hold, and after the deadline is published.
type Hold struct {
	client *Client
	limits *holdLimits // set before Acquire ends; nil means that only the lease limits the hold

	// Exactly one of these two is set when Acquire ends. The request is owned by the client's
	// goroutine. Others read only its Key, exported fields of its Terms, its Grant, and its token,
	// which is set before Acquire ends.
	req  *Request
	pass *Pass

	// slot passes the result of Acquire and later that of Release, and is then from the client's
	// pool. Between them, closing it signals the end of Downgrade.
	slot chan error

	ahead atomic.Pointer[HeldError] // the holder when the request was applied; nil means unknown

	mu       sync.Mutex  // guards the following fields except over; never held while waiting
	over     atomic.Bool // the hold has ended, or is in doubt; see ended
	isWanted bool
	released bool
	settled  bool
	rare     *rare // nil until a field of it is set
}

// rare has the fields of a hold that few holds need. Hold.mu guards it.
type rare struct {
	reason  error             // of the loss; ErrInJeopardy, which is not final, while the hold is in doubt
	until   clock.Time        // when the hold was lost, or its last doubt began; zero if released
	result  error             // of Release, or of Downgrade before
	sharers int32             // further callers that wait on slot; some may have stopped waiting
	parts   *Part             // the newest of a list; see Share
	done    chan struct{}     // nil until Done is called
	wanted  chan struct{}     // nil until Wanted is called; closed when another request waits
	lowered *lowering         // set if a downgrade has begun and was not refused
	lost    func(Loss, error) // set by OnLoss; not changed while the hold is in use
}

// ended returns why the hold has ended or is in doubt, or nil. The caller holds mu.
func (h *Hold) ended() error {
	switch {
	case !h.over.Load():
		return nil
	case h.rare != nil && h.rare.reason != nil:
		return h.rare.reason
	}
	return ErrReleased
}

// seldom returns the rare fields to be read. The caller holds mu.
func (h *Hold) seldom() (r rare) {
	if h.rare != nil {
		r = *h.rare
	}
	return r
}

// rarely returns the rare fields to be changed. The caller holds mu.
func (h *Hold) rarely() *rare {
	if h.rare == nil {
		h.rare = &rare{}
	}
	return h.rare
}

func (h *Hold) limit() *limit {
	if h.limits == nil {
		return nil
	}
	return h.limits.limit
}

func (h *Hold) idle() *idle {
	if h.limits == nil {
		return nil
	}
	return h.limits.idle
}

// Token returns the fencing token, also after the hold has ended. It is zero before Acquire.
func (h *Hold) Token() lockfsm.Token {
	switch {
	case h.pass != nil:
		return h.pass.Token()
	case h.req != nil:
		return h.req.token()
	}
	return 0
}

// Grant returns what the hold includes. From the beginning of a downgrade on, it has the new
// modes. Values of SetValue are not considered, unless the hold was resumed since.
func (h *Hold) Grant() lockfsm.Grant {
	if h.pass != nil {
		return h.pass.Request().Grant()
	}
	if l := h.lowersTo(); l != nil {
		return l.grant
	}
	return h.req.Grant()
}

// Key returns the first key. For a resumed hold whose Grant is unknown, it is the requested key.
func (h *Hold) Key() string {
	if h.pass != nil {
		return h.pass.Key
	}
	if g := h.req.Grant(); g.Key != "" {
		return g.Key
	}
	return h.req.Key
}

// Notice reports whether the hold's request has set Terms.Notice.
func (h *Hold) Notice() bool {
	if h.pass != nil {
		return h.pass.Notice
	}
	return h.req.Terms != nil && h.req.Terms.Notice
}

// Grace returns how long the hold can be in doubt.
func (h *Hold) Grace() time.Duration {
	if h.req == nil { // a pass
		return 0
	}
	return h.req.grace()
}

// Idle returns Terms.Idle. Zero means none, as for every upgrade.
func (h *Hold) Idle() time.Duration {
	if h.req == nil || h.req.Terms == nil { // a pass has no request
		return 0
	}
	return h.req.Terms.Idle
}

// Beat records that the work under the hold moves; see Terms.Idle. It is one atomic addition. It
// has no effect on a hold that has ended, or on the hold that an upgrade h belongs to.
func (h *Hold) Beat() {
	if h.limits != nil && h.limits.beats != nil {
		h.limits.beats.n.Add(1)
	}
}

// Upgradable reports whether the hold is upgradable.
func (h *Hold) Upgradable() bool {
	g := h.Grant()
	return g.Upgradable()
}

// Lowered reports whether a downgrade has begun and was not refused.
func (h *Hold) Lowered() bool { return h.lowersTo() != nil }

func (h *Hold) lowersTo() *lowering {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seldom().lowered
}

// Passed reports whether the hold is a pass of a stay.
func (h *Hold) Passed() bool { return h.pass != nil }

// Of reports whether the hold belongs to the client c.
func (h *Hold) Of(c *Client) bool { return h.client == c }

// Client returns the client of the hold.
func (h *Hold) Client() *Client { return h.client }

// Request returns the request of the hold, for use in [Terms].Under.
func (h *Hold) Request() *Request {
	if h.pass != nil {
		return h.client.stayOf(h.pass)
	}
	return h.req
}

// Err returns nil while the lock is held, ErrReleased after Release, and an error that matches
// ErrLost after the loss of the lock. It reads the clock, so the result is correct even right after
// a pause of the process. Once Err has returned an error other than ErrInJeopardy, every later call
// returns the same error.
func (h *Hold) Err() error {
	// The order matters: read first the clock, then the deadline, and then h.over. See Hold.
	now := h.client.config.Clock.Now()
	deadline := clock.Time(h.client.deadline.Load())
	reason, why := ErrLost, LossLease
	if ends := h.limit().time(); ends != 0 && ends.Before(deadline) {
		deadline, reason, why = ends, OverdueError{}, LossOverdue
	}
	if ends := h.idle().end(now); ends != 0 && ends.Before(deadline) {
		deadline, reason, why = ends, IdleError{}, LossIdle
	}
	expired := !now.Before(deadline)
	if h.over.Load() {
		return h.reason(now)
	}
	if !expired {
		return nil
	}
	if why == LossLease && h.Grace() > 0 {
		return h.expired(now)
	}
	if why == LossOverdue && !h.limit().passes() {
		return h.Err() // another handle of the hold has no such limit; see Share
	}
	// End the hold before the client's goroutine publishes a later deadline. The lock is freed even
	// if Release is never called.
	err := h.end(reason, why, deadline)
	if h.pass != nil {
		_ = h.client.unlockKept(h, "")
	} else {
		h.client.post(input{kind: inputExpired, hold: h})
	}
	return err
}

// reason returns why the hold has ended or is in doubt.
func (h *Hold) reason(now clock.Time) error {
	h.mu.Lock()
	ended := h.ended()
	h.mu.Unlock()
	switch ended {
	case nil:
		return h.Err() // the hold is good again since
	case ErrInJeopardy:
		return h.expired(now)
	}
	return ended
}

// expired returns the reason why a hold with a grace is not held at the time now, which is past a
// deadline that Err has read. The first such call begins the doubt, and one after the grace ends
// the hold.
func (h *Hold) expired(now clock.Time) error {
	h.mu.Lock()
	deadline := clock.Time(h.client.deadline.Load()) // before ended; see Err
	if h.ended() == nil && now.Before(deadline) {
		h.mu.Unlock()
		return h.Err() // the client has renewed the lease since Err read the deadline
	}
	defer h.mu.Unlock()
	if h.ended() == nil {
		_ = h.endIn(ErrInJeopardy, LossLease, deadline)
		h.client.post(input{kind: inputDoubt, hold: h})
	}
	if ended := h.ended(); ended != ErrInJeopardy {
		return ended
	}
	idle := h.idle().end(now)
	switch limit := h.limit().time(); {
	case idle != 0 && (limit == 0 || idle.Before(limit)):
		_ = h.endIn(IdleError{}, LossIdle, idle)
	case limit != 0 && !now.Before(limit) && h.limit().passes():
		_ = h.endIn(OverdueError{}, LossOverdue, limit)
	case !now.Before(h.rare.until.Add(h.Grace())): // a doubt has set it
		_ = h.endIn(ErrLost, LossLease, h.rare.until)
	default:
		return ErrInJeopardy
	}
	h.client.post(input{kind: inputExpired, hold: h})
	return h.ended()
}

// doubted returns when the present doubt began, or zero.
func (h *Hold) doubted() clock.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() != ErrInJeopardy {
		return 0
	}
	return h.rare.until
}

// good ends the doubt. The client must have published the deadline of the renewal that confirms the
// hold.
func (h *Hold) good() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() != ErrInJeopardy {
		return // released, or ended by Err, which has read a later clock
	}
	h.rare.reason, h.rare.until = nil, 0
	h.renewAll()
	h.over.Store(false)
	if h.rare.lost != nil {
		h.rare.lost(LossLease, nil)
	}
}

// Until returns the time at which the hold was lost, on the client's clock. Zero means that it
// was not lost. A loss at a deadline has the time of the deadline, even if it was detected
// later. A hold that was lost in doubt has the time at which the last doubt began, because another
// request may have been granted since.
func (h *Hold) Until() clock.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seldom().until
}

// OnLoss sets a function that is called once if the hold is lost, by the client's goroutine or by a
// caller of Err or Release. It is also called with ErrInJeopardy when a doubt begins, and with nil
// when the hold is good again. The function must not block, or use the hold or its client. It may
// run before AcquireInto returns, even if AcquireInto returns an error. OnLoss must be called
// before AcquireInto.
func (h *Hold) OnLoss(f func(why Loss, err error)) { h.rarely().lost = f }

// Behind returns the holder that the request met when it was applied. Nil means that there was no
// holder, or that the holder is unknown. Behind may be called while AcquireInto runs.
func (h *Hold) Behind() *HeldError { return h.ahead.Load() }

// end marks the hold as ended, or as in doubt, unless it has already ended, and returns the reason.
// The parameter until is the time of the end. It is ignored if the hold is in doubt, because the
// doubt has begun earlier.
func (h *Hold) end(reason error, loss Loss, until clock.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endIn(reason, loss, until)
}

// endIn is like end, but the caller holds mu.
func (h *Hold) endIn(reason error, loss Loss, until clock.Time) error {
	before := h.ended()
	doubted := before == ErrInJeopardy
	if before != nil && (!doubted || reason == ErrInJeopardy) {
		return before
	}
	switch {
	case reason != ErrReleased:
		h.rarely().reason = reason
	case doubted:
		h.rare.reason = nil
	}
	if !doubted {
		if reason != ErrReleased {
			h.rare.until = until
		}
		h.over.Store(true)
		h.shutAll()
	}
	if reason != ErrReleased && h.rare.lost != nil {
		h.rare.lost(loss, reason)
	}
	return reason
}

// Done returns a channel that is closed when the lock is no longer held, or is in doubt. After a
// doubt, Done returns another channel. The channel is closed late if the process was paused or gets
// too little CPU time. Err reports the end without delay.
func (h *Hold) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return opened(&h.rarely().done, h.over.Load())
}

// Wanted returns a channel that is closed when another request waits for the lock. The leader
// reports waiting requests only if the request of this hold has set Terms.Notice.
func (h *Hold) Wanted() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return opened(&h.rarely().wanted, h.isWanted)
}

func (h *Hold) want() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isWanted {
		shut(h.seldom().wanted)
	}
	h.isWanted = true
}

// settle ends the wait of Release with a result. It is called once.
func (h *Hold) settle(err error) {
	h.mu.Lock()
	h.settled = true
	if err != nil || h.rare != nil {
		h.rarely().result = err
	}
	if err == nil && h.rare != nil {
		h.rare.until = 0 // if it was in doubt, it was held
	}
	answer := h.slot
	h.mu.Unlock()
	answer <- err
}

// ContextError returns the reason why ctx has ended. The error matches both ctx.Err and the cause
// of ctx with errors.Is.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// lowering is a downgrade that has begun, and what the hold includes after it.
type lowering struct {
	modes []lockfsm.Mode
	grant lockfsm.Grant
}
