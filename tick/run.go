package tick

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/locker"
)

const (
	look  = time.Minute // longest time between two reads of the wall clock
	retry = time.Second // pause before a busy locker is asked again
)

var errOver = errors.New("tick: the tick is over")

// Run runs a job once per tick, on one of the instances that call it. locks is usually a
// *mortise.Node. If it is also a [Store], Run records finished ticks in it. A failing job does not
// end Run. Run returns one of these:
//
//   - the cause of the end of ctx
//   - nil when the schedule has ended
//   - mortise.ErrLeaving or ErrClosed when the node leaves or is closed
//   - an error that names what is invalid in the job
//   - any other error of the locker, except a lost lock and errors that a retry can cure
//
// The package comment states under "Leaving" how long Run takes to return. Run leaves no goroutine
// behind.
func Run(ctx context.Context, locks locker.Locker, job Job) error {
	job, err := job.withDefaults()
	if err != nil {
		return err
	}
	if locks == nil {
		return errors.New("tick: the locker is nil")
	}
	r := &runner{locks: locks, finished: finishedOf(locks, job.Name), job: job,
		plan: plan{schedule: job.Schedule, late: job.Late, skew: job.Skew}}
	// No other runner requests this lock. The lock's context ends when the node leaves, even if the
	// next tick is hours away.
	presence := job.Name + "/run/" + rand.Text()
	for {
		var ended error
		err := r.do(ctx, presence, shown.Tick, func(ctx context.Context, _ mortise.Token) error {
			ended = r.loop(ctx)
			return nil
		})
		switch {
		case ended == errNoMore:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case ended != nil && !errors.Is(ended, mortise.ErrLost):
			return ended
		case ended == nil && !busy(err):
			return err
		case ended == nil:
			sleep(ctx, retry)
		}
	}
}

func busy(err error) bool {
	return errors.Is(err, mortise.ErrOverloaded) || errors.Is(err, mortise.ErrQueueFull) ||
		errors.Is(err, mortise.ErrNotReady) ||
		errors.Is(err, mortise.ErrNoRoom)
}

type runner struct {
	locks    locker.Locker
	finished finished
	job      Job
	plan     plan
}

// now returns the time of the wall clock. It removes the monotonic reading, so that comparisons
// notice when the wall clock was set.
func (r *runner) now() time.Time { return r.job.Now().Round(0) }

func (r *runner) loop(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := r.now()
		w, err := r.plan.next(now)
		if err != nil {
			return err
		}
		if wait := w.at.Sub(now); wait > 0 {
			sleep(ctx, min(wait, look))
			continue
		}
		if err := r.attend(ctx, w); err != nil {
			return err
		}
	}
}

func (r *runner) attend(ctx context.Context, w window) error {
	had, err := r.within(ctx, r.job.Name+"/"+w.name(), shown.Tick, w, func(held context.Context, _ mortise.Token) {
		r.hold(held, w)
	})
	switch {
	case had, ctx.Err() != nil:
		return nil
	case err == errOver: // another instance probably held the tick's lock
		r.plan.attended(w.at)
		return nil
	case busy(err):
		r.plan.pass(w.at)
		r.job.Report(r.tick(w, 0), err)
		return nil
	}
	return err
}

// hold is called with the lock of a tick. It runs the job, unless the tick is recorded as finished,
// and then keeps the lock.
func (r *runner) hold(held context.Context, w window) {
	asking, cancel := context.WithTimeout(held, max(0, w.over.Sub(r.now())))
	recorded, err := r.finished.has(asking, w)
	cancel()
	switch {
	case held.Err() != nil:
		return
	case err != nil: // the record cannot be read: leave the tick to another instance
		r.plan.pass(w.at)
		r.job.Report(r.tick(w, 0), err)
		return
	case recorded:
		r.plan.attended(w.at)
	case !r.work(held, w):
		return
	default:
		until := time.Now().Add(max(0, w.free.Sub(r.now()))).Add(recording)
		writing, cancel := context.WithDeadline(context.WithoutCancel(held), until)
		recorded = r.finished.add(writing, w)
		cancel()
	}
	r.keep(held, w, recorded)
}

// work runs the job under the lock of the job and reports the result. It returns whether the tick
// is finished and must not run again.
func (r *runner) work(ctx context.Context, w window) (done bool) {
	var token mortise.Token
	var result error
	ran, err := r.within(ctx, r.job.Name, shown.Job, w, func(held context.Context, t mortise.Token) {
		token, result = t, r.job.Run(held, r.tick(w, t))
		done = result == nil || held.Err() == nil
		result = causeText(held, result)
	})
	switch {
	case ran:
		r.plan.attended(w.at)
	case err == errOver:
		r.plan.pass(w.at)
		result = ErrStillRunning
	default:
		r.plan.pass(w.at)
		result = err
	}
	r.job.Report(r.tick(w, token), result)
	return done
}

// A call of r.within locks key. If the lock is granted before w.over, it runs fn under this lock.
// It reports whether fn ran. If fn did not run, the error is errOver or the error of the locker.
// A loss of the lock after fn has returned is ignored.
func (r *runner) within(ctx context.Context, key, what string, w window,
	fn func(context.Context, mortise.Token)) (ran bool, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(w.over.Sub(r.now()), func() { cancel(errOver) })
	defer timer.Stop()
	err = r.do(waiting, key, what, func(held context.Context, token mortise.Token) error {
		if timer.Stop() && r.now().Before(w.over) { // a suspended machine delays timers
			ran = true
			// Do not wait for the confirmation of the release, which may take long without a
			// majority.
			defer cancel(nil)
			fn(held, token)
		}
		return nil
	})
	switch {
	case ran:
		return true, nil
	case context.Cause(waiting) == errOver, err == nil:
		return false, errOver
	}
	return false, err
}

// A call of r.do locks key and runs fn. If the locker is a node, the lock has a label with its
// purpose.
func (r *runner) do(ctx context.Context, key, what string, fn func(context.Context, mortise.Token) error) (err error) {
	node, is := r.locks.(*mortise.Node)
	if !is {
		return r.locks.Do(ctx, key, fn)
	}
	lock, err := node.Acquire(ctx, mortise.Request{Key: key, Labels: shown.Purpose(what)})
	if err != nil {
		return err
	}
	defer func() {
		if unlock := lock.Unlock(ctx); err == nil {
			err = unlock
		}
	}()
	return fn(lock.Context(ctx), lock.Token())
}

// keep holds the lock of a finished tick until w.free, so that other instances need not read the
// record. If its context ends earlier, keep returns at once if the tick is recorded, the lock is
// lost or the node is closed. Otherwise it still waits until w.free.
func (r *runner) keep(held context.Context, w window, recorded bool) {
	sleep(held, w.free.Sub(r.now()))
	if recorded {
		return
	}
	if cause := context.Cause(held); cause == nil || errors.Is(cause, mortise.ErrLost) ||
		errors.Is(cause, mortise.ErrClosed) {
		return
	}
	sleep(context.WithoutCancel(held), w.free.Sub(r.now()))
}

func (r *runner) tick(w window, token mortise.Token) Tick {
	return Tick{Job: r.job.Name, Time: w.at.UTC(), Missed: w.missed, Token: token}
}

// causeText returns the result of a job together with the reason, if any, why its context has
// ended. A job that returned nil counts as failed if its lock was lost.
func causeText(ctx context.Context, result error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil, errors.Is(result, cause), result == nil && !errors.Is(cause, mortise.ErrLost):
		return result
	case result == nil:
		return cause
	}
	return fmt.Errorf("%w: %w", cause, result)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
