package raftlog

import (
	"errors"
	"fmt"
	"time"
)

const maxCloseWait = 5 * time.Second

// end runs when the owner goroutine ends.
func (l *Log) end(err error) {
	l.mu.Lock()
	if l.ended == nil {
		l.ended = err
	}
	retired := !errors.Is(l.ended, ErrClosed)
	if retired {
		l.status.Retired = err
		l.status.Leading, l.status.Leader, l.status.InFlight, l.status.Queued = false, 0, 0, 0
	}
	l.survey = Survey{Self: l.survey.Self, Config: l.survey.Config}
	in := l.in
	l.in, l.spare, l.queued = inbox{}, inbox{}, 0
	l.mu.Unlock()
	close(l.saves)
	close(l.tasks)
	l.cancel()
	for _, t := range append(l.transfers, in.transfers...) {
		t.done <- l.ended
	}
	l.transfers, l.taking = nil, taken{}
	if !retired {
		return
	}
	l.cfg.Logger.Warn("this replica has retired", "cause", err) // the Applier logs the error
	defer func() {
		if p := recover(); p != nil {
			l.cfg.Logger.Error("the Applier panicked in Retired", "cause", p)
		}
	}()
	l.cfg.Applier.Retired(err)
}

// runAppender is the appender goroutine. It returns after the owner has ended or after a failed
// Save.
func (l *Log) runAppender() {
	defer close(l.appender)
	for b := range l.saves {
		err := l.saveOne(b)
		l.put(func(in *inbox) { in.stored, in.storeErr = true, err })
		if err != nil {
			return
		}
	}
}

func (l *Log) saveOne(b Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %w", ErrStorage, ErrPanic, l.cause(p))
		}
	}()
	if err := l.cfg.Store.Save(b); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

// Close stops the replica, waits for its goroutines, and closes the store. It does not transfer the
// leadership: call Transfer before. Close may be called more than once and concurrently, but not by
// the Applier. If Close takes more than 5 s, it returns ErrHung. The store is then still open, or
// its Close has not returned. A goroutine that hangs in the kernel ends when its system call
// returns.
func (l *Log) Close() error {
	if !l.closing.CompareAndSwap(false, true) { // sync.Once would hold a lock during the wait
		<-l.closed
		return l.closeErr
	}
	defer close(l.closed)
	l.mu.Lock()
	if l.ended == nil {
		l.ended = ErrClosed
	}
	l.mu.Unlock()
	l.kick()
	l.closeErr = l.finish()
	return l.closeErr
}

func (l *Log) finish() error {
	limit := time.NewTimer(maxCloseWait)
	defer limit.Stop()
	for _, done := range []chan struct{}{l.owner, l.appender, l.snapshotter} {
		select {
		case <-done:
		case <-limit.C:
			return fmt.Errorf("%w: it has not returned after %v", ErrHung, maxCloseWait)
		}
	}
	stored := make(chan error, 1)
	go func() { stored <- l.cfg.Store.Close() }()
	select {
	case err := <-stored:
		return err
	case <-limit.C:
		return fmt.Errorf("%w: the store's Close has not returned after %v", ErrHung, maxCloseWait)
	}
}
