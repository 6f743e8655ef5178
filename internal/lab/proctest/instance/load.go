package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// load runs the goroutines that take locks. Nothing in load is random.
type load struct {
	node *mortise.Node
	name string
	slow int // factor by which all pauses are multiplied
	// The process ID is part of the keys that are held for long, so that a new process does not
	// wait for a killed one.
	life int
	ctx  context.Context
	end  context.CancelFunc
	all  sync.WaitGroup
}

const (
	holders     = 3 // number of locks that an instance holds for its whole life
	callerPause = 10 * time.Millisecond

	// The callers of sticky locks call in bursts. Of the pauses between two bursts, one of three is
	// longer than an unused lock is kept.
	stickyCallers = 2 // callers of the contended sticky lock
	burst         = 20
	burstPause    = 600 * time.Millisecond
)

// contended are the keys that all instances use. Most requests for the second one are sticky.
var contended = [...]string{"hot", "kept/hot"}

func startLoad(node *mortise.Node, name string, pause time.Duration, slow, callers int) *load {
	l := &load{node: node, name: name, slow: slow, life: os.Getpid()}
	l.ctx, l.end = context.WithCancel(context.Background())
	for i := range holders {
		l.all.Go(func() { l.hold(fmt.Sprintf("hold/%s/%d/%d", name, l.life, i)) })
	}
	l.all.Go(func() { l.take(contended[0], 2*time.Millisecond, 40*time.Millisecond) })
	l.all.Go(func() { l.take("own/"+name, 10*time.Millisecond, 40*time.Millisecond) })
	for range stickyCallers {
		l.all.Go(func() { l.keep(contended[1], time.Millisecond) })
	}
	l.all.Go(func() { l.keep("kept/"+name, 0) })
	for i := range callers {
		l.all.Go(func() { l.take(fmt.Sprintf("crowd/%s/%d", name, i), 0, callerPause) })
	}
	l.all.Go(l.try)
	l.all.Go(l.giveUp)
	l.all.Go(func() { l.probe(pause) })
	return l
}

func (l *load) stop() {
	l.end()
	l.all.Wait()
}

func (l *load) hold(key string) {
	for l.goesOn(nil) {
		lock, err := l.node.Lock(l.ctx, key)
		if err == nil { // release the lock even if the load has just ended
			<-lock.Context(l.ctx).Done()
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
	}
}

func (l *load) take(key string, hold, pause time.Duration) {
	for l.goesOn(nil) {
		lock, err := l.node.Lock(l.ctx, key)
		if err == nil { // release the lock even if the load has just ended
			l.sleep(hold)
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(pause)
	}
}

func (l *load) keep(key string, hold time.Duration) {
	for n := 1; l.goesOn(nil); n++ {
		lock, err := l.lockSticky(l.ctx, key)
		if err == nil { // release the lock even if the load has just ended
			l.sleep(hold)
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		if l.sleep(time.Millisecond); n%burst == 0 {
			l.sleep(time.Duration(n/burst%3) * burstPause)
		}
	}
}

func (l *load) try() {
	for n := 0; l.goesOn(nil); n++ {
		lock, err := l.node.TryLock(l.ctx, contended[n%len(contended)])
		if err == nil {
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(100 * time.Millisecond)
	}
}

// giveUp waits for the contended locks, usually with too short a limit.
func (l *load) giveUp() {
	for n := 0; l.goesOn(nil); n++ {
		ctx, cancel := context.WithTimeout(l.ctx, time.Duration(1+n%17)*time.Millisecond)
		lock := l.node.Lock
		if n%4 == 1 {
			lock = l.lockSticky
		}
		held, err := lock(ctx, contended[n%2])
		cancel()
		if err == nil {
			l.unlock(held)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(100 * time.Millisecond)
	}
}

func (l *load) lockSticky(ctx context.Context, key string) (*mortise.Lock, error) {
	return l.node.LockSticky(ctx, key, mortise.StickyOptions{})
}

// probe takes and releases an uncontended key, a new one each time. The gaps between these grants
// show for how long the group granted no locks at all.
func (l *load) probe(pause time.Duration) {
	for n := 0; l.goesOn(nil); n++ {
		lock, err := l.node.Lock(l.ctx, fmt.Sprintf("probe/%s/%d/%d", l.name, l.life, n))
		if err == nil {
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		// The instances must not probe at the same moments.
		l.sleep(pause/2 + pause*time.Duration((7*l.life+3*n)%8)/8)
	}
}

// unlock releases a lock. It waits for the confirmation until the node ends, at most five seconds.
func (l *load) unlock(lock *mortise.Lock) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = lock.Unlock(ctx)
}

func (l *load) goesOn(err error) bool { return l.ctx.Err() == nil && !over(err) }

func (l *load) sleep(d time.Duration) {
	select {
	case <-time.After(d * time.Duration(l.slow)):
	case <-l.ctx.Done():
	}
}

// over reports whether an error means that the node accepts no further requests.
func over(err error) bool {
	return errors.Is(err, mortise.ErrLeaving) || errors.Is(err, mortise.ErrClosed)
}
