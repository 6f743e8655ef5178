package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/lockfsm"
)

// owner is one random user of reentrant locks. It keeps a stack of handles, each acquired under the
// context of the handle below it.
type owner struct {
	t     *testing.T
	f     *fleet
	node  *node
	who   check.Caller
	r     *rand.Rand
	judge *reentries
	stack []entered
	made  int
	began map[mortise.Token]int // how many handles had been made when each hold began
}

type entered struct {
	lock *mortise.Lock
	ctx  context.Context
	made int

	reader bool // it was entered as shared
}

// reentries is check.Reentry for many goroutines, with counts of the events.
type reentries struct {
	t  *testing.T
	mu sync.Mutex // guards the fields below
	check.Reentry
	entries, again, deadlocks, forced int
}

func (j *reentries) tell(f func() error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := f(); err != nil {
		j.t.Error(err)
	}
}

func (o *owner) top() context.Context {
	if len(o.stack) == 0 {
		return o.t.Context()
	}
	return o.stack[len(o.stack)-1].ctx
}

func (o *owner) handles(l *mortise.Lock) (all []*mortise.Lock) {
	for _, e := range o.stack {
		if e.lock.Token() == l.Token() {
			all = append(all, e.lock)
		}
	}
	return all
}

func (o *owner) enter(key string) {
	mine := false
	for _, e := range o.stack {
		mine = mine || e.lock.Key() == key
	}
	// The limit is exceeded only if a request waits for a lock of its own owner.
	ctx, cancel := context.WithTimeout(o.top(), time.Minute)
	defer cancel()
	mode := mortise.Exclusive
	if mine && o.r.IntN(3) == 0 {
		mode = mortise.Shared
	}
	l, err := o.node.Acquire(ctx, mortise.Request{Key: key, Mode: mode, Try: o.r.IntN(4) == 0})
	var deadlock *mortise.DeadlockError
	switch {
	case err == nil:
		o.judge.tell(func() error {
			o.judge.entries++
			if mine {
				o.judge.again++
			}
			return o.judge.Enter(key, o.who, lockfsm.Token(l.Token()))
		})
		o.made++
		if !mine {
			o.began[l.Token()] = o.made
		}
		o.stack = append(o.stack, entered{l, l.Context(o.top()), o.made, mode == mortise.Shared})
	case mine && !o.onlyReads(key):
		o.t.Errorf("%v is inside %q, and may not enter it again: %v", o.who, key, err)
	case errors.As(err, &deadlock):
		o.judge.tell(func() error { o.judge.deadlocks++; return nil })
		o.exitAll()
	case !errors.Is(err, mortise.ErrHeld):
		o.t.Errorf("%v wants %q: %v", o.who, key, err)
	}
}

// onlyReads reports whether all handles of key are those of readers, so that the lock has become
// shared. A request for it is then refused as a deadlock, or waits for the other readers.
func (o *owner) onlyReads(key string) bool {
	return !slices.ContainsFunc(o.stack, func(e entered) bool { return e.lock.Key() == key && !e.reader })
}

// exit unlocks a handle anywhere in the stack. If that ends the hold, exit also unlocks the handles
// that were made under it, because their contexts have ended.
func (o *owner) exit(l *mortise.Lock) {
	last := len(o.handles(l)) == 1
	o.judge.tell(func() error { return o.judge.Leave(l.Key(), o.who) })
	for range 1 + o.r.IntN(2) {
		if err := l.Unlock(o.t.Context()); err != nil {
			o.t.Errorf("%v unlocks %q: %v", o.who, l.Key(), err)
		}
	}
	if err := l.Err(); !errors.Is(err, mortise.ErrUnlocked) {
		o.t.Errorf("the handle is unlocked, and says %v", err)
	}
	o.drop(l)
	for _, e := range o.stack {
		if err := e.lock.Err(); err != nil {
			o.t.Errorf("another handle was unlocked, and this one of %q says %v", e.lock.Key(), err)
		}
	}
	for last && len(o.stack) > 0 && o.stack[len(o.stack)-1].made > o.began[l.Token()] {
		o.exit(o.stack[len(o.stack)-1].lock)
	}
}

func (o *owner) drop(l *mortise.Lock) {
	o.stack = slices.DeleteFunc(o.stack, func(e entered) bool { return e.lock == l })
}

func (o *owner) exitAll() {
	for len(o.stack) > 0 {
		o.exit(o.stack[len(o.stack)-1].lock)
	}
}

// force ends the hold of the lowest handle by force, and with it all handles of that hold.
func (o *owner) force() {
	l, ctx := o.stack[0].lock, o.stack[0].ctx
	handles := o.handles(l)
	for range handles {
		o.judge.tell(func() error { return o.judge.Leave(l.Key(), o.who) })
	}
	if ended, err := o.node.ForceUnlock(o.t.Context(), l.Key(), l.Token(), "a test"); err != nil || !ended {
		o.t.Errorf("force: %v, %v", ended, err)
	}
	<-l.Done()
	<-ctx.Done() // a goroutine of the node ends the context soon
	if _, err := o.node.Lock(ctx, l.Key()); err == nil {
		o.t.Errorf("%v enters %q again, which has ended by force", o.who, l.Key())
	}
	for i, l := range handles {
		if err := l.Unlock(o.t.Context()); !errors.Is(err, mortise.ErrLost) {
			o.t.Errorf("handle %d of a hold that was ended by force: %v", i, err)
		}
		o.drop(l)
	}
	o.judge.tell(func() error { o.judge.forced++; return nil })
	o.exitAll() // all other handles were made under the hold that has ended
}

func (o *owner) run(steps int) {
	for range steps {
		switch n := len(o.stack); {
		case n == 0 || n < 6 && o.r.IntN(2) == 0:
			o.enter(fmt.Sprint("k", o.r.IntN(3)))
		case o.r.IntN(20) == 0:
			o.force()
		default:
			o.exit(o.stack[o.r.IntN(n)].lock)
		}
		time.Sleep(time.Duration(o.r.IntN(3)) * time.Millisecond)
	}
	o.exitAll()
}

func TestEntriesAreCounted(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		judge, seed := &reentries{t: t}, rand.Uint64()
		var all sync.WaitGroup
		for i := range 9 {
			o := &owner{t: t, f: f, node: f.nodes[i%3], who: check.Caller{Node: f.nodes[i%3].config.Name, Op: uint64(i)},
				judge: judge, began: map[mortise.Token]int{}}
			o.r = rand.New(rand.NewPCG(seed, uint64(i)))
			all.Go(func() { o.run(150) })
		}
		all.Wait()
		t.Logf("seed %d: %d entries, %d of them again; %d deadlocks, %d ended by force", seed, judge.entries,
			judge.again, judge.deadlocks, judge.forced)
		if judge.entries == judge.again || judge.again == 0 || judge.deadlocks == 0 || judge.forced == 0 {
			t.Error("the programs do not meet what they are for")
		}
		f.nothingLeft()
	})
}

// TestACircleIsFoundBehindALockThatWasEnteredAgain enters an outer lock again while an inner lock
// is held. A request under the new handle must also count as a request of the holder of the inner
// lock, or the deadlock is not found.
func TestACircleIsFoundBehindALockThatWasEnteredAgain(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		acquire := func(ctx context.Context, key string) *mortise.Lock {
			l, err := f.nodes[0].Lock(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		outer := acquire(ctx, "outer")
		inner := acquire(outer.Context(ctx), "inner")
		again := acquire(inner.Context(outer.Context(ctx)), "outer")
		other := f.lock(1, "other")
		refused := make(chan error)
		go func() {
			l, err := f.nodes[1].Lock(other.Context(ctx), "inner")
			if err == nil {
				err = l.Unlock(ctx)
			}
			refused <- errors.Join(err, other.Unlock(ctx))
		}()
		time.Sleep(time.Second) // the request waits for inner
		var deadlock *mortise.DeadlockError
		if _, err := f.nodes[0].Lock(again.Context(inner.Context(outer.Context(ctx))), "other"); !errors.As(err,
			&deadlock) {
			t.Errorf("inner is held, and waits for other, whose holder waits for inner: %v", err)
		}
		for _, l := range []*mortise.Lock{again, inner, outer} {
			unlock(t, l)
		}
		if err := <-refused; err != nil {
			t.Errorf("the other one: %v", err)
		}
		f.nothingLeft()
	})
}
