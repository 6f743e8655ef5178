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
// It is not a sync.Locker, because it can fail: see Err.
//
// What the goroutines share: over is set once and for all, before the client publishes a deadline
// that was extended after this hold had been lost. So whoever reads the new deadline finds the
// mark, and no renewal can make a lost hold look held again.
type Hold struct {
	client *Client
	token  lockfsm.Token
	limit  clock.Time // when it ends by itself, set before the end of Acquire is told; zero: never
	req    Request    // the client's goroutine only, but for its key and its terms, of which only the owner changes

	slot   chan struct{} // of the client's pool: where the end of Acquire is told, and later that of Release
	result error         // of Acquire, set before that is told, nil: granted; then of Release, set with settled

	behind atomic.Pointer[HeldError] // who held the lock when the request was applied; nil while that is not known

	over     atomic.Bool // ended is set
	mu       sync.Mutex  // guards what follows; never held while waiting
	ended    error       // why it is no longer held
	until    clock.Time  // when asking would first have said so; set with ended, unless it was released
	done     chan struct{}
	wanted   chan struct{} // nil until somebody asks, or somebody waits; closed then
	isWanted bool
	released bool  // Release was called
	settled  bool  // it is over
	sharers  int32 // who were given the slot besides the first; not all of them wait for what is told

	lost func(Loss, error) // of OnLoss; never changed once the hold is given away
}

// Token returns the fencing token: every later grant of the same key has a higher one. It stays the
// same after the lock has ended.
func (h *Hold) Token() lockfsm.Token { return h.token }

// Key returns the key.
func (h *Hold) Key() string { return h.req.Key }

// Holds reports whether the hold is of that key.
func (h *Hold) Holds(key string) bool {
	return h.req.Key == key || h.req.Terms != nil && slices.Contains(h.req.Terms.Keys, key)
}

// Terms returns how many permits the hold has, and out of how many, as in lockfsm.Command.
func (h *Hold) Terms() (permits, of uint32) {
	if h.req.Terms == nil {
		return 0, 0
	}
	return h.req.Terms.Permits, h.req.Terms.Of
}

// Of reports whether the hold was granted to a call of c.
func (h *Hold) Of(c *Client) bool { return h.client == c }

// Request returns what stands for the hold in [Terms].Under.
func (h *Hold) Request() *Request { return &h.req }

// Err returns nil while the lock is held, ErrReleased after Release, and an error that is ErrLost
// once the lock is lost. It reads the clock and does not trust that any timer has fired, so the
// first call that begins after a pause of the process tells the truth. An error once returned
// stays.
func (h *Hold) Err() error {
	// The order of these three reads is what makes the answer true at the moment at which the clock
	// was read; see the type's comment.
	now := h.client.config.Clock.Now()
	deadline := clock.Time(h.client.deadline.Load())
	reason, why := ErrLost, LossLease
	if h.limit != 0 && h.limit.Before(deadline) {
		deadline, reason, why = h.limit, OverdueError{}, LossOverdue
	}
	expired := !now.Before(deadline)
	if h.over.Load() {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.ended
	}
	if !expired {
		return nil
	}
	// We are the first to notice. The client's goroutine may be about to publish a later deadline;
	// this hold must not come back with it, and its lock is to be given back even if nobody calls
	// Release.
	err := h.end(reason, why, deadline)
	h.client.post(input{kind: inputExpired, hold: h})
	return err
}

// Until returns when the hold was lost, on the client's clock, and zero if it was not: for a lock
// that was lost to its deadline that deadline, though nobody may have looked at the clock then.
func (h *Hold) Until() clock.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// OnLoss has f called once if the hold is lost, by whoever notices: the client's goroutine, or a
// caller of Err. f must not block and must not use the hold. It is to be called before the hold is
// given to AcquireInto; f may be called before that has returned, also with an error.
func (h *Hold) OnLoss(f func(why Loss, err error)) { h.lost = f }

// Behind returns who held the lock when the request was applied, so that it had to wait or was
// refused; nil if nobody did, or while it is not known. It may be called from the beginning of
// AcquireInto.
func (h *Hold) Behind() *HeldError { return h.behind.Load() }

// end marks the hold as ended by that time and returns why, which is an earlier reason if there is
// one. loss is for OnLoss.
func (h *Hold) end(reason error, loss Loss, until clock.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endIn(reason, loss, until)
}

// endIn is end for whoever holds mu.
func (h *Hold) endIn(reason error, loss Loss, until clock.Time) error {
	if h.ended == nil {
		h.ended, h.until = reason, until
		h.over.Store(true)
		if h.done != nil {
			close(h.done)
		}
		if h.lost != nil && reason != ErrReleased {
			h.lost(loss, reason)
		}
	}
	return h.ended
}

// Done returns a channel that is closed when the lock is no longer held. It may be closed late,
// when the process is short of CPU time or was stopped: Err is exact.
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

// Wanted returns a channel that is closed when the leader has told that somebody waits for the
// lock. That is told only of a request whose Terms ask for it.
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

// Release gives the lock back. It always does, even if ctx has ended: ctx bounds only the wait for
// the confirmation. After it returns, whatever it returns, the handle holds nothing. It returns nil
// once the release is confirmed, an error that is ErrLost if the lock was lost before the client's
// goroutine took the release in, ErrClosed if the client was closed before the confirmation came,
// or an error that is ctx's. Calling it again waits for the same confirmation.
func (h *Hold) Release(ctx context.Context) error {
	return h.letGo(ctx, input{kind: inputRelease, hold: h})
}

// Detach lets go of the lock without ending the hold, if its terms have a delay or it was taken up
// with one: it stays that long in the group, for whoever takes it up. For this handle it is what
// Release is, and whichever of the two comes first is what happens.
func (h *Hold) Detach(ctx context.Context) error {
	return h.letGo(ctx, input{kind: inputDetach, hold: h})
}

func (h *Hold) letGo(ctx context.Context, how input) error {
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
		return fmt.Errorf("mortise: lock %q is released, not yet confirmed: %w", h.req.Key, ContextError(ctx))
	}
}

// ReleaseSoon gives the lock back and does not wait for the confirmation. It returns nil, also when
// the lock was released before, or an error that is ErrLost if it was lost before.
func (h *Hold) ReleaseSoon() error {
	return h.letGoSoon(input{kind: inputRelease, hold: h})
}

// Lapse is Detach for a hold whose holder is gone: the group is told that it expired, and why. It
// does not wait for the confirmation, and returns what ReleaseSoon does. why is at most
// lockfsm.MaxValueBytes long; what is longer is cut.
func (h *Hold) Lapse(why string) error {
	return h.letGoSoon(input{kind: inputDetach, hold: h, bytes: []byte(why[:min(len(why), lockfsm.MaxValueBytes)])})
}

func (h *Hold) letGoSoon(how input) error {
	_ = h.Err() // nobody else will tell this caller of a loss
	h.startRelease(how)
	if err := h.Err(); err != ErrReleased {
		return err
	}
	return nil
}

// startRelease starts the release if nobody has, and returns where its end is told; nil: it is
// over. It does not read the clock: the client's goroutine does before it takes the release in, and
// says so if the lock was lost by then.
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
		h.settle(err) // lost before
	} else if !h.client.post(how) {
		h.settle(ErrClosed)
	}
	return answer
}

// settle ends the wait of Release. It is called once.
func (h *Hold) settle(err error) {
	h.mu.Lock()
	h.result, h.settled = err, true
	answer := h.slot
	h.mu.Unlock()
	answer <- struct{}{}
}

// told passes the answer on to the next who shares it; the last gives the slot back. One that
// somebody did not wait for is left as it is.
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

// ContextError returns the reason why ctx has ended, so that errors.Is finds both the context's own
// error and a cause of the caller's.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
