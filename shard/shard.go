package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/presence"
)

// Node is the part of *mortise.Node that Run uses.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

// Work is a set of shards and what to do for each. Run copies it.
type Work struct {
	Name string

	// Count is the number of shards, 1 to 4,096. They are numbered from 0. It must be equal on all
	// instances, because it says into how many parts the work is divided. See ErrCounts.
	Count int

	// Weight is the share of this instance compared with the others, 1 to 1,000. Zero means 1.
	Weight int

	// Run works for one shard until ctx ends, and then returns soon.
	Run func(ctx context.Context, s Shard) error

	// Backoff is the pause before a shard runs again here after its function has returned by itself
	// or could not begin. Zero or less means one second. The pause can be longer by some seconds.
	Backoff time.Duration

	// MaxIdle is mortise.Request.MaxIdle of each shard's lock. A function that has not called
	// mortise.Beat with its context for that time hangs: the context ends, and the shard runs again,
	// here or on another instance, even if the function does not return. So a function that waits for
	// work must beat, too. Zero means no limit.
	MaxIdle time.Duration

	// Report is called for each error of Run while its context has not ended, for the loss of a
	// shard's lock, and for each lock that could not be requested. It is called with the index -1
	// and an error that matches ErrCounts when instances with another Count are there. Nil means
	// that errors are dropped, except ErrCounts, which goes to slog.Default.
	Report func(index int, err error)
}

// Shard is one shard while this instance owns it.
type Shard struct {
	Index int
	Token mortise.Token // a later owner of the shard has a higher token
}

// ErrCounts means that instances run the same Name with different Counts. The error names them. It
// is reported each time these instances change. Meanwhile every shard of every Count has an owner
// whose Count includes it, but a shard may then be another part of the work than its number says to
// the other instances: until all have one Count, a part may run twice, under different shards.
var ErrCounts = errors.New("shard: instances have different Counts")

const (
	maxCount  = 4096
	maxWeight = 1000
)

func (w Work) checked() (Work, error) {
	switch {
	case w.Run == nil:
		return w, fmt.Errorf("%w: shard: Work.Run is nil", mortise.ErrBadRequest)
	case w.Count < 1 || w.Count > maxCount:
		return w, fmt.Errorf("%w: shard: Work.Count is %d; want 1 to %d", mortise.ErrBadRequest, w.Count, maxCount)
	case w.Weight < 0 || w.Weight > maxWeight:
		return w, fmt.Errorf("%w: shard: Work.Weight is %d; want 0 (for 1) to %d", mortise.ErrBadRequest, w.Weight,
			maxWeight)
	case w.MaxIdle != 0 && w.MaxIdle < hold.MinIdle:
		return w, fmt.Errorf("%w: shard: Work.MaxIdle is %v; want 0 (no limit), or %v or more", mortise.ErrBadRequest,
			w.MaxIdle, hold.MinIdle)
	}
	w.Weight = max(w.Weight, 1)
	if w.Backoff <= 0 {
		w.Backoff = time.Second
	}
	if w.Report == nil {
		w.Report = func(_ int, err error) {
			if errors.Is(err, ErrCounts) {
				slog.Warn(err.Error())
			}
		}
	}
	return w, nil
}

// Run owns its share of the shards, and runs the function for each, until ctx ends. It returns the
// cause of ctx, mortise.ErrLeaving or ErrClosed if the node leaves or is closed, or another error
// of mortise.Node.Acquire that a repetition cannot cure, such as mortise.ErrBadKey.
func Run(ctx context.Context, node Node, w Work) error {
	w, err := w.checked()
	if err != nil {
		return err
	}
	id := rand.Text()
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	r := &runner{node: node, work: w, plan: newPlan(w.Name, w.Count, int(hash.Sum32()%uint32(w.Count)), id),
		ends: map[int]context.CancelCauseFunc{}, hung: map[int]int{}, base: context.WithoutCancel(ctx)}
	watching, stop := context.WithCancelCause(ctx)
	var announced sync.WaitGroup
	announced.Go(func() { stop(presence.Run(watching, node, memberName(w.Name), memberValue(w.Weight, w.Count, id))) })
	err = r.follow(watching)
	stop(err)
	r.endAll(err) // at once, because without a majority the presence ends only after some seconds
	announced.Wait()
	return err
}

// runner carries out a plan.
type runner struct {
	node Node
	work Work
	base context.Context // of the functions
	all  sync.WaitGroup

	mu   sync.Mutex // guards the fields below; never held across a wait
	plan *plan
	ends map[int]context.CancelCauseFunc // of the shards that run here
	hung map[int]int                     // functions of each shard that hang here and have lost it
}

var errMoved = errors.New("shard: another instance takes this shard")

// follow carries out the plan after each change, until ctx ends.
func (r *runner) follow(ctx context.Context) error {
	for e, err := range r.node.Watch(ctx, r.work.Name+"/", 0) {
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		differ := ""
		r.mu.Lock()
		if r.plan.apply(&e); e.Kind == mortise.EventCurrent {
			differ = r.plan.disagreement()
			end, begin := r.plan.next(time.Now())
			for _, index := range end {
				r.ends[index](errMoved)
			}
			for _, index := range begin {
				r.begin(index)
			}
		}
		r.mu.Unlock()
		if differ != "" {
			r.work.Report(-1, fmt.Errorf("%w: %q has Count %d here, and %s: set one Count on all instances, or run the "+
				"new Count under another Name", ErrCounts, r.work.Name, r.work.Count, differ))
		}
	}
	return errors.New("shard: the watch has ended without an error") // Watch excludes this
}

// begin must be called under mu.
func (r *runner) begin(index int) {
	ctx, end := context.WithCancelCause(r.base)
	r.ends[index] = end
	r.all.Go(func() {
		failed := true
		hangs := false // guarded by mu
		defer func() {
			var again time.Time
			if failed { // also if own has not returned, because the function has called runtime.Goexit
				again = time.Now().Add(r.work.Backoff)
			}
			end(nil)
			r.mu.Lock()
			defer r.mu.Unlock()
			if hangs {
				r.hung[index]--
				return
			}
			r.plan.ended(index, again)
			delete(r.ends, index)
		}()
		failed = r.own(ctx, index, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			hangs = true
			// The shard runs again without a wait for this function. With each further function that hangs
			// it begins here later, so that their number grows slowly.
			r.plan.ended(index, time.Now().Add(time.Duration(r.hung[index])*r.work.Backoff))
			delete(r.ends, index)
			r.hung[index]++
		})
	})
}

// own runs the function for a shard, if its lock is free. It reports whether the next try must
// wait. If the function hangs, own calls hung, and returns when the function does.
func (r *runner) own(ctx context.Context, index int, hung func()) (failed bool) {
	lock, err := r.node.Acquire(ctx, mortise.Request{
		Key: shardKey(r.work.Name, index), Try: true, MaxIdle: r.work.MaxIdle, Labels: shown.Purpose(shown.Job),
	})
	switch {
	case errors.Is(err, mortise.ErrHeld) || err != nil && ctx.Err() != nil:
		return false // another instance was faster, and its event follows
	case err != nil:
		r.work.Report(index, err)
		return true
	}
	reported := false
	over, err := hold.Use(ctx, lock, func(ctx context.Context, lock *mortise.Lock) (err error) {
		run := func() { err = r.work.Run(ctx, Shard{Index: index, Token: lock.Token()}) }
		if r.work.MaxIdle == 0 {
			run()
			return err
		}
		hold.Watch(lock, func(why error) {
			hung()
			r.work.Report(index, why)
			reported = true
		}, run)
		return err
	})
	switch {
	case over == nil && err != nil:
		r.work.Report(index, err)
	case errors.Is(over, mortise.ErrLost) && !reported:
		r.work.Report(index, over)
	}
	return over == nil
}

// endAll ends all shards and waits until their functions have returned.
func (r *runner) endAll(why error) {
	r.mu.Lock()
	for _, end := range r.ends {
		end(why)
	}
	r.mu.Unlock()
	r.all.Wait()
}
