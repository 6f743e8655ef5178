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

// natsCaller locks a key by creating it, and unlocks it by deleting it. Two calls exclude each other
// even if they use one client. The keys of the workloads are valid in a bucket.
type natsCaller struct {
	js jetstream.JetStream
	kv jetstream.KeyValue
}

// Lock ignores the end of the context while a request is under way, because the key might exist
// then although no caller holds it.
func (c natsCaller) Lock(ctx context.Context, key string) (Hold, error) {
	revision, err := c.kv.Create(context.WithoutCancel(ctx), key, nil, jetstream.KeyTTL(natsTTL))
	if keyWasTaken(err) {
		revision, err = c.wait(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	return natsHold{c.kv, key, revision}, nil
}

// wait watches the key until it has created it. The watch begins with the current entry, so it
// misses no deletion. An entry may be old, so wait creates the key only if the entry is still the
// last one. If it is not, the watch delivers a later entry.
func (c natsCaller) wait(ctx context.Context, key string) (uint64, error) {
	watch, err := c.kv.Watch(ctx, key, jetstream.MetaOnly())
	if err != nil {
		return 0, err
	}
	defer endWatch(watch)
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case entry, ok := <-watch.Updates():
			switch {
			case !ok:
				return 0, errors.New("nats: the watch has ended")
			case entry == nil && seen > 0:
				continue // the mark between the current entry and later ones
			case entry != nil:
				seen = entry.Revision()
				if entry.Operation() == jetstream.KeyValuePut {
					continue
				}
			}
		}
		if revision, err := c.create(ctx, key, seen); !keyWasTaken(err) {
			return revision, err
		}
	}
}

// create writes the key if its last entry is that of the given revision. It is like KeyValue.Update,
// which takes no TTL.
func (c natsCaller) create(ctx context.Context, key string, last uint64) (uint64, error) {
	ack, err := c.js.PublishMsg(context.WithoutCancel(ctx), nats.NewMsg("$KV."+natsBucket+"."+key),
		jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithMsgTTL(natsTTL))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// keyWasTaken reports whether a request failed because another caller wrote the key. Replicated
// streams have another code than the one that ErrKeyExists has.
func keyWasTaken(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// endWatch takes the remaining entries out of the channel, because the goroutine of the watch could
// be sending one.
func endWatch(watch jetstream.KeyWatcher) {
	_ = watch.Stop() // the server removes the consumer of a lost watch by itself
	for range watch.Updates() {
	}
}

type natsHold struct {
	kv       jetstream.KeyValue
	key      string
	revision uint64
}

// Unlock fails if the lock has ended, because the key then has another revision.
func (h natsHold) Unlock(ctx context.Context) error {
	return h.kv.Delete(ctx, h.key, jetstream.LastRevision(h.revision))
}
