package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

type natsHold struct {
	kv       jetstream.KeyValue
	key      string
	revision uint64
	watch    jetstream.KeyWatcher // nil if the caller has not waited
}

// Unlock fails if the lock has ended, because the key then has another revision. It ends the watch
// last, because the servers agree on the end of a watch. The next holder need not wait for that.
func (h natsHold) Unlock(ctx context.Context) error {
	err := h.remove(ctx)
	if h.watch != nil {
		endWatch(h.watch)
	}
	return err
}

func (h natsHold) remove(ctx context.Context) error {
	for {
		err := h.kv.Delete(ctx, h.key, jetstream.LastRevision(h.revision))
		if !keyIsBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(natsAgain):
		}
	}
}

// endWatch takes the remaining entries out of the channel, because the goroutine of the watch could
// be sending one.
func endWatch(watch jetstream.KeyWatcher) {
	_ = watch.Stop() // the server removes the consumer of a lost watch by itself
	for range watch.Updates() {
	}
}
