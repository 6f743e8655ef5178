package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
)

// answerSoon is the time limit of /readyz and of queries to the leader. It is shorter than the
// timeouts of clients.
const answerSoon = time.Second

// An implementation of asks takes locks and sends queries for the programs that use the HTTP API.
// Every handler that a program with a derived secret can reach uses this interface, so the program
// never acts with the agent's rights (see forAgent). Implementations must be safe for concurrent
// use.
type asks interface {
	acquire(context.Context, wish) (holding, error)
	stored
	check(ctx context.Context, key string, token mortise.Token) (bool, error)
	ids(ctx context.Context, count int) (first uint64, err error)
	keys(ctx context.Context, prefix string) (list []mortise.KeyInfo, more bool, err error)
	watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
	status(context.Context) (mortise.Status, error)
	health(context.Context) (mortise.Health, error)
	ready(context.Context) error
}

type holding interface {
	Key() string
	Token() mortise.Token
	Err() error
	Beat()
	Unlock(context.Context) error
	UnlockSoon() error
	Downgrade(context.Context) error
	Detach(context.Context) error
	Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
	SetValue(ctx context.Context, value string) error
	Wanted() <-chan struct{}
}

// upgraded returns the upgrade of a lock; see mortise.Lock.Upgrade.
func upgraded(ctx context.Context, h holding) (up holding, err error) {
	if l, ok := h.(*guest.Lock); ok {
		up, err = l.Upgrade(ctx)
	} else if l, ok := h.(*mortise.Lock); ok {
		up, err = l.Upgrade(ctx)
	} else {
		err = bad("this lock cannot be upgraded")
	}
	if err != nil {
		return nil, err // a holding that contains a nil lock is not equal to nil
	}
	return up, nil
}

type own struct{ node *mortise.Node }

func (o own) acquire(ctx context.Context, w wish) (holding, error) {
	var lock *mortise.Lock
	var err error
	switch {
	case w.resume != 0:
		lock, err = o.node.Resume(ctx, w.Key, w.resume, w.resumed())
	case w.sticky:
		lock, err = o.node.LockSticky(ctx, w.Key, w.stuck())
	default:
		lock, err = o.node.Acquire(ctx, w.Request)
	}
	if errors.Is(err, context.DeadlineExceeded) && o.node.Status().Waiting != "" {
		return nil, fmt.Errorf("%w: %w", mortise.ErrNotReady, err)
	}
	if err != nil {
		return nil, err // a holding that contains a nil *Lock is not equal to nil
	}
	return lock, nil
}

func (o own) get(ctx context.Context, key string) ([]byte, uint64, error) {
	return o.node.Get(ctx, key)
}

func (o own) put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return o.node.Put(ctx, key, data, revision)
}

func (o own) check(ctx context.Context, key string, token mortise.Token) (bool, error) {
	return o.node.Check(ctx, key, token)
}

func (o own) key(ctx context.Context, key string) (mortise.KeyInfo, error) {
	return o.node.Peek(ctx, key)
}

const maxKeys = 1000 // keys in one answer of /v1/keys

func (o own) keys(ctx context.Context, prefix string) (list []mortise.KeyInfo, more bool, err error) {
	return firstKeys(o.node.List(ctx, prefix))
}

func firstKeys(all iter.Seq2[mortise.KeyInfo, error]) (list []mortise.KeyInfo, more bool, err error) {
	for k, err := range all {
		if err != nil {
			return nil, false, err
		}
		if len(list) == maxKeys {
			return list, true, nil
		}
		list = append(list, k)
	}
	return list, false, nil
}

func (o own) ids(ctx context.Context, count int) (uint64, error) { return o.node.IDs(ctx, count) }

func (o own) watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	return o.node.Watch(ctx, prefix, after)
}

func (o own) status(context.Context) (mortise.Status, error) { return o.node.Status(), nil }

func (o own) health(ctx context.Context) (mortise.Health, error) { return o.node.Health(ctx) }

func (o own) ready(ctx context.Context) error { return o.node.Ready(ctx) }
