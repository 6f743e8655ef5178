package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// This file is the work of dev: the instances take turns at writing a report, which the parent has
// and protects with the tokens.

const (
	devTurn  = 2 * time.Second
	devAgain = 200 * time.Millisecond // before the next request after one that has failed
)

// devWork takes turns until ctx ends. The parent sends to wrote when it has done a write.
func devWork(ctx context.Context, node *mortise.Node, to *reporter, wrote <-chan struct{}) {
	for ctx.Err() == nil {
		asked := time.Now()
		lock, err := node.Acquire(ctx, mortise.Request{Key: devKey, Value: "writes the report"})
		if err != nil {
			sleep(ctx, devAgain)
			continue
		}
		to.say(devReport{Kind: devGranted, Token: lock.Token(), Waited: time.Since(asked)})
		takeTurn(ctx, lock, to, wrote)
	}
}

// takeTurn writes at the end of the turn. The report of the grant is the write at its beginning.
// Before it writes it does not look whether the lock is still held. So it behaves like a program
// that is paused between the look and the write. It unlocks when the parent has done the write:
// otherwise the parent might read the report of the next holder first.
func takeTurn(ctx context.Context, lock *mortise.Lock, to *reporter, wrote <-chan struct{}) {
	lost := sync.OnceFunc(func() { to.say(devReport{Kind: devLost, Token: lock.Token()}) })
	over := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-lock.Done():
			lost()
		case <-over:
		}
	})
	sleep(ctx, devTurn)
	to.say(devReport{Kind: devWrites, Token: lock.Token()})
	select {
	case <-wrote:
	case <-ctx.Done():
	}
	close(over)
	watcher.Wait()
	if err := lock.Unlock(ctx); errors.Is(err, mortise.ErrLost) {
		lost()
	}
	to.say(devReport{Kind: devDone, Token: lock.Token()})
}
