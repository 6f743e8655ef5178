package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// load is the goroutines that take locks. What they see is in the history of the node; nothing here
// decides at random.
type load struct {
	node *mortise.Node
	name string // of the instance
	slow int    // how many times as long as usual it pauses
	life int    // of the process: keys that are held for a long time must not wait for those of a life that was killed
	ctx  context.Context
	end  context.CancelFunc
	all  sync.WaitGroup
}

const (
	holders     = 3                     // locks that an instance holds for as long as it lives
	callerPause = 10 * time.Millisecond // for each further caller
)

// startLoad starts the goroutines; stop ends them.
func startLoad(node *mortise.Node, name string, pause time.Duration, slow, callers int) *load {
	l := &load{node: node, name: name, slow: slow, life: os.Getpid()}
	l.ctx, l.end = context.WithCancel(context.Background())
	for i := range holders {
		l.all.Go(func() { l.hold(fmt.Sprintf("hold/%s/%d/%d", name, l.life, i)) })
	}
	l.all.Go(func() { l.take("hot", 2*time.Millisecond, 40*time.Millisecond) })
	l.all.Go(func() { l.take("own/"+name, 10*time.Millisecond, 40*time.Millisecond) })
	for i := range callers {
		l.all.Go(func() { l.take(fmt.Sprintf("crowd/%s/%d", name, i), 0, callerPause) })
	}
	l.all.Go(l.try)
	l.all.Go(l.giveUp)
	l.all.Go(func() { l.probe(pause) })
	return l
}

// stop ends the load and waits until it has given everything back.
func (l *load) stop() {
	l.end()
	l.all.Wait()
}

// hold keeps a lock for as long as it can: until it is lost, the node leaves, or the load ends.
func (l *load) hold(key string) {
	for l.goesOn(nil) {
		lock, err := l.node.Lock(l.ctx, key)
		if err == nil { // also if the load has just ended
			<-lock.Context(l.ctx).Done()
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
	}
}

// take takes a lock again and again.
func (l *load) take(key string, hold, pause time.Duration) {
	for l.goesOn(nil) {
		lock, err := l.node.Lock(l.ctx, key)
		if err == nil { // also if the load has just ended
			l.sleep(hold)
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(pause)
	}
}

// try never waits for the contended lock.
func (l *load) try() {
	for l.goesOn(nil) {
		lock, err := l.node.TryLock(l.ctx, "hot")
		if err == nil {
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(100 * time.Millisecond)
	}
}

// giveUp waits for the contended lock, each time for another while, and most often not
// for long enough.
func (l *load) giveUp() {
	for n := 0; l.goesOn(nil); n++ {
		ctx, cancel := context.WithTimeout(l.ctx, time.Duration(1+n%17)*time.Millisecond)
		lock, err := l.node.Lock(ctx, "hot")
		cancel()
		if err == nil {
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(100 * time.Millisecond)
	}
}

// probe takes and frees an uncontended key, a new one each time: how long that takes is
// how long a free lock could not be had.
func (l *load) probe(pause time.Duration) {
	for n := 0; l.goesOn(nil); n++ {
		lock, err := l.node.Lock(l.ctx, fmt.Sprintf("probe/%s/%d/%d", l.name, l.life, n))
		if err == nil {
			l.unlock(lock)
		}
		if !l.goesOn(err) {
			return
		}
		l.sleep(pause/2 + pause*time.Duration((7*l.life+3*n)%8)/8) // or all instances would probe at the same moments
	}
}

// unlock gives a lock back. The wait for the confirmation ends with the node, or when there is no
// leader for long.
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
