package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsTTL frees the lock of a crashed holder. Nothing renews it, so it is longer than any workload
// holds a lock.
const natsTTL = time.Minute

// natsAgain is the time between two requests for a key that the leader has not finished with.
const natsAgain = time.Millisecond

var errWatchEnded = errors.New("nats: the watch has ended, because the connection is closed")

// natsCaller locks a key by creating it, and unlocks it by deleting it. Two calls exclude each
// other even if they use one client. The keys of the workloads are valid in a bucket.
type natsCaller struct {
	js  jetstream.JetStream
	kv  jetstream.KeyValue
	ttl time.Duration
}

// Lock ignores the end of the context while a request is under way, because the key might exist
// then although no caller holds it.
func (c natsCaller) Lock(ctx context.Context, key string) (Hold, error) {
	revision, err := c.kv.Create(context.WithoutCancel(ctx), key, nil, jetstream.KeyTTL(c.ttl))
	if err == nil {
		return natsHold{c.kv, key, revision, nil}, nil
	}
	if !keyWasTaken(err) {
		return nil, err
	}
	watch, err := c.kv.Watch(ctx, key, jetstream.MetaOnly())
	if err != nil {
		return nil, err
	}
	if revision, err = c.wait(ctx, key, watch); err != nil {
		endWatch(watch)
		return nil, err
	}
	return natsHold{c.kv, key, revision, watch}, nil
}

// wait creates the key as soon as the watch reports its deletion. The watch begins with the current
// entry, so it misses no deletion. The leader can refuse the key even then, if it is busy or if the
// watch reads from a faster server. So wait asks again while the deletion is the last known entry.
func (c natsCaller) wait(ctx context.Context, key string, watch jetstream.KeyWatcher) (uint64, error) {
	var last uint64
	var held bool
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case entry, ok := <-watch.Updates():
			if !ok {
				return 0, errWatchEnded
			}
			if entry != nil { // nil follows the current entry, if there is one
				last, held = entry.Revision(), entry.Operation() == jetstream.KeyValuePut
			}
		case <-again:
		}
		if held {
			continue
		}
		if revision, err := c.create(ctx, key, last); !keyWasTaken(err) {
			return revision, err
		}
		again = time.After(natsAgain)
	}
}

// create writes the key if its last entry is that of the given revision. It is like
// KeyValue.Update, which takes no TTL.
func (c natsCaller) create(ctx context.Context, key string, last uint64) (uint64, error) {
	ack, err := c.js.PublishMsg(context.WithoutCancel(ctx), nats.NewMsg("$KV."+natsBucket+"."+key),
		jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithMsgTTL(c.ttl))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// keyWasTaken reports whether a request failed because another caller wrote the key.
func keyWasTaken(err error) bool { return errors.Is(err, jetstream.ErrKeyExists) || keyIsBusy(err) }

// keyIsBusy reports whether a request failed because the leader has not finished an earlier one for
// the key. It acknowledges and delivers an entry shortly before it accepts the next.
func keyIsBusy(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}
