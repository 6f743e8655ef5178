package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	token  lockfsm.Token
	limit  clock.Time // when the hold reaches its longest duration, set before Acquire ends; zero means never

	// Exactly one of these two is set when Acquire ends. The request is owned by the client's
	// goroutine, and others read only its Key and exported fields of its Terms.
	req  *Request
	pass *Pass

	// slot signals the end of Acquire and later of Release, and is then from the client's pool.
	// Between them, closing it signals the end of Downgrade.
	slot   chan struct{}
	result error // what the call returns whose end slot signals; set before the signal

	ahead atomic.Pointer[HeldError] // the holder when the request was applied; nil means unknown

	over     atomic.Bool
	mu       sync.Mutex // guards the following fields except lost; never held while waiting
	ended    error      // ErrInJeopardy, which is not final, while the hold is in doubt
	until    clock.Time // when the hold was lost, or its last doubt began; zero if released
	done     chan struct{}
	wanted   chan struct{} // nil until Wanted is called; closed when another request waits
	isWanted bool
	released bool
	settled  bool
	lowered  bool  // a downgrade has begun and was not refused
	sharers  int32 // further callers that wait on slot; some may have stopped waiting

	lost func(Loss, error) // set by OnLoss; not changed while the hold is in use
}

// Token returns the fencing token, also after the hold has ended.
func (h *Hold) Token() lockfsm.Token { return h.token }

// Key returns the first key.
func (h *Hold) Key() string {
	if h.pass != nil {
		return h.pass.Key
	}
	return h.req.Key
}

// Holds reports whether the hold includes the key.
func (h *Hold) Holds(key string) bool {
	if h.Key() == key {
		return true
	}
	t := h.Terms()
	return t != nil && slices.Contains(t.Keys, key)
}

// Terms returns the terms of the call that was granted the lock. They must not be changed.
func (h *Hold) Terms() *Terms {
	if h.pass != nil {
		return h.pass.Request().Terms
	}
	return h.req.Terms
}

// Passed reports whether the hold is a pass of a stay.
func (h *Hold) Passed() bool { return h.pass != nil }

// Of reports whether the hold belongs to the client c.
func (h *Hold) Of(c *Client) bool { return h.client == c }

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
	if h.limit != 0 && h.limit.Before(deadline) {
		deadline, reason, why = h.limit, OverdueError{}, LossOverdue
	}
	expired := !now.Before(deadline)
	if h.over.Load() {
		return h.reason(now)
	}
	if !expired {
		return nil
	}
	if why == LossLease && h.grace() > 0 {
		return h.expired(now)
	}
	// End the hold before the client's goroutine publishes a later deadline. The lock is freed even
	// if Release is never called.
	err := h.end(reason, why, deadline)
	if h.pass != nil {
		_ = h.client.unlockKept(h)
	} else {
		h.client.post(input{kind: inputExpired, hold: h})
	}
	return err
}

// reason returns why the hold has ended or is in doubt.
func (h *Hold) reason(now clock.Time) error {
	h.mu.Lock()
	ended := h.ended
	h.mu.Unlock()
	switch ended {
	case nil:
		return h.Err() // the hold is good again since
	case ErrInJeopardy:
		return h.expired(now)
	}
	return ended
}

// Until returns the time at which the hold was lost, on the client's clock. Zero means that it
// was not lost. A loss at a deadline has the time of the deadline, even if it was detected
// later. A hold that was lost in doubt has the time at which the last doubt began, because another
// request may have been granted since.
func (h *Hold) Until() clock.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// OnLoss sets a function that is called once if the hold is lost, by the client's goroutine or by a
// caller of Err or Release. It is also called with ErrInJeopardy when a doubt begins, and with nil
// when the hold is good again. The function must not block, or use the hold or its client. It may run
// before AcquireInto returns, even if AcquireInto returns an error. OnLoss must be called before
// AcquireInto.
func (h *Hold) OnLoss(f func(why Loss, err error)) { h.lost = f }

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
	doubted := h.ended == ErrInJeopardy
	if h.ended == nil || doubted && reason != ErrInJeopardy {
		h.ended = reason
		if !doubted {
			h.until = until
			h.over.Store(true)
			if h.done != nil {
				close(h.done)
			}
		}
		if h.lost != nil && reason != ErrReleased {
			h.lost(loss, reason)
		}
	}
	return h.ended
}

// Done returns a channel that is closed when the lock is no longer held, or is in doubt. After a
// doubt, Done returns another channel. The channel is closed late
// if the process was paused or gets too little CPU time. Err reports the end without delay.
func (h *Hold) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.ended != nil {
			close(h.done)
		}
	}
	return h.done
}

// Wanted returns a channel that is closed when another request waits for the lock. The leader
// reports waiting requests only if the request of this hold has set Terms.Notice.
func (h *Hold) Wanted() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wanted == nil {
		h.wanted = make(chan struct{})
		if h.isWanted {
			close(h.wanted)
		}
	}
	return h.wanted
}

func (h *Hold) want() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isWanted && h.wanted != nil {
		close(h.wanted)
	}
	h.isWanted = true
}

// Release releases the lock, even if ctx has ended. The context limits only the wait for the
// confirmation. After Release has returned, even with an error, the caller does not hold the lock.
// It returns nil once the release is confirmed, an error that matches ErrLost if the lock was lost
// before, ErrClosed after Close, or an error that wraps the error of ctx. A second call waits for
// the same confirmation.
func (h *Hold) Release(ctx context.Context) error {
	return h.letGo(ctx, input{kind: inputRelease, hold: h})
}

// Detach is like Release, except that a hold with a delay remains in the group for that delay and
// can be resumed. A resumed hold without a delay of its own keeps the earlier delay. If Release and
// Detach are both called, only the first call has an effect.
func (h *Hold) Detach(ctx context.Context) error {
	return h.letGo(ctx, input{kind: inputDetach, hold: h})
}

func (h *Hold) letGo(ctx context.Context, how input) error {
	if h.pass != nil {
		return h.client.unlockKept(h)
	}
	answer := h.startRelease(how)
	if answer == nil {
		return h.result
	}
	select {
	case <-answer:
		return h.told(answer)
	default:
	}
	select {
	case <-answer:
		return h.told(answer)
	case <-ctx.Done():
		return fmt.Errorf("mortise: lock %q was released, but this is not yet confirmed: %w", h.req.Key, ContextError(ctx))
	}
}

// ReleaseSoon releases the lock without waiting for the confirmation. It returns an error that
// matches ErrLost if the lock was lost before, and otherwise nil.
func (h *Hold) ReleaseSoon() error {
	return h.letGoSoon(input{kind: inputRelease, hold: h})
}

// Lapse is like Detach, for a hold whose holder has ended without a release. The group records
// that the hold expired. It also records the reason why, up to a length of lockfsm.MaxValueBytes.
// Lapse does not wait, and returns the same errors as ReleaseSoon.
func (h *Hold) Lapse(why string) error {
	return h.letGoSoon(input{kind: inputDetach, hold: h, bytes: []byte(why[:min(len(why), lockfsm.MaxValueBytes)])})
}

func (h *Hold) letGoSoon(how input) error {
	if h.pass != nil {
		return h.client.unlockKept(h)
	}
	_ = h.Err() // records a loss before the release hides it
	h.startRelease(how)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended != ErrReleased:
		return h.ended
	case h.until != 0:
		return ErrLost // released in doubt: whether it was held is not known
	}
	return nil
}

// startRelease starts the release if it has not begun. It returns the channel that signals the
// end of the release, or nil if the release has ended. It does not check the deadline. The
// client's goroutine does that.
func (h *Hold) startRelease(how input) (answer chan struct{}) {
	h.mu.Lock()
	if h.released {
		defer h.mu.Unlock()
		if h.settled {
			return nil
		}
		h.sharers++
		return h.slot
	}
	h.released, h.slot = true, h.client.slot()
	answer = h.slot
	err := h.endIn(ErrReleased, 0, 0)
	h.mu.Unlock()
	if err != ErrReleased {
		h.settle(err)
	} else if !h.client.post(how) {
		h.settle(ErrClosed)
	}
	return answer
}

// settle ends the wait of Release with a result. It is called once.
func (h *Hold) settle(err error) {
	h.mu.Lock()
	h.result, h.settled = err, true
	if err == nil {
		h.until = 0 // if it was in doubt, it was held
	}
	answer := h.slot
	h.mu.Unlock()
	answer <- struct{}{}
}

// A caller that has received the signal calls told, which passes it on to the next caller that
// waits on the same slot. The last caller returns the slot to the pool, unless a caller has
// stopped waiting.
func (h *Hold) told(answer chan struct{}) error {
	h.mu.Lock()
	shared := h.sharers > 0
	if shared {
		h.sharers--
	}
	h.mu.Unlock()
	if shared {
		answer <- struct{}{}
	} else {
		h.client.slots.Put(answer)
	}
	return h.result
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
