package tick

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/locker"
)

const (
	look  = time.Minute // longest time between two reads of the wall clock
	retry = time.Second // pause before a busy locker is asked again
)

var errOver = errors.New("tick: the tick is over")

// acquirer acquires locks by requests. Run uses it instead of Do if the locker has it, as
// *mortise.Node has.
type acquirer = locker.Acquirer[mortise.Request, *mortise.Lock]

// Run runs a job once per tick, on one of the instances that call it. locks is usually a
// *mortise.Node. If it is also a [Store], Run records finished ticks in it. If it has the method
// Acquire of a node, Run calls that and not Do. A failing job does not end Run. Run returns one of
// these:
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
	if _, is := locks.(acquirer); !is && job.MaxIdle != 0 {
		return fmt.Errorf("tick: Job.MaxIdle needs the method Acquire of *mortise.Node, and the locker is a %T", locks)
	}
	r := &runner{locks: locks, finished: finishedOf(locks, job.Name), job: job,
		plan: plan{schedule: job.Schedule, late: job.Late, skew: job.Skew}}
	// No other runner requests this lock. The lock's context ends when the node leaves, even if the
	// next tick is hours away.
	presence := mortise.Request{Key: job.Name + "/run/" + rand.Text(), Labels: shown.Purpose(shown.Tick)}
	for {
		var ended error
		err := r.do(ctx, presence, func(ctx context.Context, _ held) error {
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

// held is a lock while it is held.
type held struct {
	token mortise.Token
	lock  *mortise.Lock // nil if the locker is no acquirer
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
	tick := mortise.Request{Key: r.job.Name + "/" + w.name(), Labels: shown.Purpose(shown.Tick)}
	had, err := r.within(ctx, tick, w, func(ctx context.Context, h held) { r.hold(ctx, h, w) })
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
func (r *runner) hold(ctx context.Context, h held, w window) {
	asking, cancel := context.WithTimeout(ctx, max(0, w.over.Sub(r.now())))
	recorded, err := r.finished.has(asking, w)
	cancel()
	switch {
	case ctx.Err() != nil:
		return
	case err != nil: // the record cannot be read: leave the tick to another instance
		r.plan.pass(w.at)
		r.job.Report(r.tick(w, 0), err)
		return
	case recorded:
		r.plan.attended(w.at)
	case !r.work(ctx, h, w):
		return
	default:
		until := time.Now().Add(max(0, w.free.Sub(r.now()))).Add(recording)
		writing, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
		recorded = r.finished.add(writing, w)
		cancel()
	}
	r.keep(ctx, w, recorded)
}

// work runs the job under the lock of the job and reports the result. It returns whether the tick
// is finished and must not run again. If the job hangs, work unlocks the tick, so that another
// instance can run it. The lock of the tick has no MaxIdle: this instance waits under it, too.
func (r *runner) work(ctx context.Context, tick held, w window) (done bool) {
	var token mortise.Token
	var result error
	request := mortise.Request{Key: r.job.Name, MaxIdle: r.job.MaxIdle, Labels: shown.Purpose(shown.Job)}
	ran, err := r.within(ctx, request, w, func(ctx context.Context, h held) {
		run := func() {
			token, result = h.token, r.job.Run(ctx, r.tick(w, h.token))
			done = result == nil || ctx.Err() == nil
			result = causeText(ctx, result)
		}
		if r.job.MaxIdle == 0 {
			run()
			return
		}
		hold.Watch(h.lock, func(error) {
			<-ctx.Done() // by the loss, which is then its cause, and not by the unlock of the tick
			_ = tick.lock.UnlockSoon()
		}, run)
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

// A call of r.within requests a lock. If it is granted before w.over, it runs fn under this lock.
// It reports whether fn ran. If fn did not run, the error is errOver or the error of the locker.
// A loss of the lock after fn has returned is ignored.
func (r *runner) within(ctx context.Context, q mortise.Request, w window,
	fn func(context.Context, held)) (ran bool, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(w.over.Sub(r.now()), func() { cancel(errOver) })
	defer timer.Stop()
	err = r.do(waiting, q, func(ctx context.Context, h held) error {
		if timer.Stop() && r.now().Before(w.over) { // a suspended machine delays timers
			ran = true
			// Do not wait for the confirmation of the release, which may take long without a
			// majority.
			defer cancel(nil)
			fn(ctx, h)
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

// A call of r.do acquires a lock and runs fn. If the locker is no acquirer, only the key of the
// request counts.
func (r *runner) do(ctx context.Context, q mortise.Request, fn func(context.Context, held) error) (err error) {
	node, is := r.locks.(acquirer)
	if !is {
		return r.locks.Do(ctx, q.Key, func(ctx context.Context, token mortise.Token) error {
			return fn(ctx, held{token: token})
		})
	}
	lock, err := node.Acquire(ctx, q)
	if err != nil {
		return err
	}
	defer func() {
		if unlock := lock.Unlock(ctx); err == nil {
			err = unlock
		}
	}()
	return fn(lock.Context(ctx), held{lock.Token(), lock})
}

// keep holds the lock of a finished tick until w.free, so that other instances need not read the
// record. If its context ends earlier, keep returns at once if the tick is recorded, the lock is
// lost or was unlocked, or the node is closed. Otherwise it still waits until w.free.
func (r *runner) keep(ctx context.Context, w window, recorded bool) {
	sleep(ctx, w.free.Sub(r.now()))
	if recorded {
		return
	}
	if cause := context.Cause(ctx); cause == nil || errors.Is(cause, mortise.ErrLost) ||
		errors.Is(cause, mortise.ErrUnlocked) || errors.Is(cause, mortise.ErrClosed) {
		return
	}
	sleep(context.WithoutCancel(ctx), w.free.Sub(r.now()))
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
