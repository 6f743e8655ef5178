// Package fakelock implements locks in memory, for tests of code that uses locks. Several instances
// share the locks. A test can make each instance lose a lock, leave or crash.
//
// Guarantees: a key has one holder at a time, requests are granted in the order of their arrival,
// and tokens rise over all keys. Concurrency: everything is safe for concurrent use, and works in a
// testing/synctest bubble. Only a crash starts timers. Failure: only the failures that the test
// requests. Limits: the package implements only Do, and has no times without a leader. Refused
// alternative: real nodes, because a test cannot make them lose one lock at a given moment.
package fakelock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

// Locks is the set of locks that the instances share. The zero value is ready to use. It must not
// be copied.
type Locks struct {
	mu     sync.Mutex          // guards all below, and the fields of entries and instances
	queues map[string][]*entry // the first entry of each queue is the holder
	token  locker.Token
}

type entry struct {
	in      *Instance
	granted chan struct{}
	token   locker.Token
	end     context.CancelCauseFunc // ends the context of the holder; nil before the holder has one
	lost    error
	orphan  bool // its instance has crashed: the entry remains until the session would have expired
}

// Instance is one user of the locks, like a node. Locks.Instance makes one.
type Instance struct {
	locks   *Locks
	refuses error
	stopped chan struct{} // closed when refuses is set
}

// Instance adds an instance.
func (l *Locks) Instance() *Instance { return &Instance{locks: l, stopped: make(chan struct{})} }

// Do implements mortise.Node.Do.
func (in *Instance) Do(ctx context.Context, key string, fn func(context.Context, locker.Token) error) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l := in.locks
	e, err := l.queue(in, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove(key, e)) }()
	select {
	case <-e.granted:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-in.stopped:
		return in.refuses
	}
	held, end := context.WithCancelCause(ctx)
	defer end(locker.ErrUnlocked)
	l.mu.Lock()
	e.end = end
	if in.refuses != nil {
		end(in.refuses)
	}
	l.mu.Unlock()
	return fn(held, e.token)
}

func (l *Locks) queue(in *Instance, key string) (*entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in.refuses != nil {
		return nil, in.refuses
	}
	if l.queues == nil {
		l.queues = map[string][]*entry{}
	}
	e := &entry{in: in, granted: make(chan struct{})}
	l.queues[key] = append(l.queues[key], e)
	l.grant(key)
	return e, nil
}

// grant needs mu.
func (l *Locks) grant(key string) {
	queue := l.queues[key]
	if len(queue) == 0 {
		delete(l.queues, key)
		return
	}
	if e := queue[0]; e.token == 0 {
		l.token++
		e.token = l.token
		close(e.granted)
	}
}

func (l *Locks) remove(key string, e *entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.orphan {
		l.drop(key, e)
	}
	return e.lost
}

func (l *Locks) drop(key string, e *entry) {
	l.queues[key] = slices.DeleteFunc(l.queues[key], func(other *entry) bool { return other == e })
	l.grant(key)
}

// Lose takes a key from its holder, whose context ends with locker.ErrLost, and gives the key to
// the next waiter. It reports whether there was a holder.
func (l *Locks) Lose(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[key]
	if len(queue) == 0 || queue[0].end == nil {
		return false
	}
	e := queue[0]
	e.lost = locker.ErrLost
	e.end(locker.ErrLost)
	l.drop(key, e)
	return true
}

// Keys returns the keys that any instance holds or waits for, sorted.
func (l *Locks) Keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key := range l.queues {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Leave ends the contexts of the instance's holds with locker.ErrLeaving, and refuses later
// requests with the same error.
func (in *Instance) Leave() {
	in.locks.mu.Lock()
	defer in.locks.mu.Unlock()
	in.stop(locker.ErrLeaving)
}

// Crash ends the instance as if its process had crashed: its locks remain taken for ttl. The
// contexts of its holds end with locker.ErrClosed, because a test cannot end a goroutine.
func (in *Instance) Crash(ttl time.Duration) {
	l := in.locks
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, queue := range l.queues {
		for _, e := range queue {
			if e.in == in {
				e.orphan = true
				time.AfterFunc(ttl, func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					l.drop(key, e)
				})
			}
		}
	}
	in.stop(locker.ErrClosed)
}

// stop needs mu.
func (in *Instance) stop(why error) {
	if in.refuses != nil {
		return
	}
	in.refuses = why
	close(in.stopped)
	for _, queue := range in.locks.queues {
		for _, e := range queue {
			if e.in == in && e.end != nil {
				e.end(why)
			}
		}
	}
}
