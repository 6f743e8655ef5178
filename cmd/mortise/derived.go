package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// derived acts for a program with a derived secret, through the program's guest. It implements the
// interface asks.
type derived struct {
	guest   *guest.Guest
	session *guest.Session
}

const (
	openAgain   = 100 * time.Millisecond
	closeWithin = 3 * time.Second // limit for ending a guest's session; if exceeded, its locks expire
)

// begin opens the guest and its session. If the secret is wrong, the handshake of the first query
// fails.
func (d *derived) begin(ctx context.Context, config mortise.Config) (err error) {
	if d.guest, err = guest.Open(config); err != nil {
		return fmt.Errorf("%w: %w", errBadSecret, err)
	}
	for {
		if _, err = d.here(ctx); !errors.Is(err, mortise.ErrNotReady) || !sleep(ctx, openAgain) {
			break
		}
	}
	if err == nil {
		d.session, err = d.guest.Session(ctx)
	}
	if err != nil {
		return errors.Join(err, d.guest.Close())
	}
	return nil
}

func (d *derived) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = d.session.Close(ctx) // if this fails, the session expires
	_ = d.guest.Close()
}

// The method here returns the status of the first instance that answers. If the agent has a port
// of its own, that instance is the agent.
func (d *derived) here(ctx context.Context) (*query.HereAnswer, error) {
	places, errs := d.guest.Places(ctx)
	for _, place := range places {
		asking, cancel := context.WithTimeout(ctx, answerSoon)
		a, err := guest.Ask(asking, d.guest, place.Addr, query.AdminClient.Here, &query.HereRequest{})
		cancel()
		if err == nil {
			return a, nil
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if errors.Is(err, transport.ErrForeign) {
		return nil, fmt.Errorf("%w by the cluster: %w", errBadSecret, err)
	}
	return nil, fmt.Errorf("%w: no instance answers: %w", mortise.ErrNotReady, err)
}

func puts[Q, A any](ctx context.Context, d *derived, method guest.Method[Q, A], q *Q) (*A, error) {
	a, err := guest.Put(ctx, d.guest, method, q)
	return a, guest.Refusal(err)
}

func (d *derived) acquire(ctx context.Context, r wish) (holding, error) {
	var lock *guest.Lock
	var err error
	switch {
	case r.resume != 0:
		lock, err = d.session.Resume(ctx, r.Key, r.resume, r.resumed())
	case r.sticky:
		lock, err = d.session.LockSticky(ctx, r.Key, r.stuck())
	default:
		lock, err = d.session.Acquire(ctx, r.Request)
	}
	if err != nil {
		return nil, err // a holding that contains a nil lock is not equal to nil
	}
	return lock, nil
}

func (d *derived) get(ctx context.Context, key string) ([]byte, uint64, error) {
	k, err := d.key(ctx, key)
	return k.Data, k.Revision, err
}

func (d *derived) put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return d.guest.Data(ctx, nil, key, data, revision)
}

func (d *derived) check(ctx context.Context, key string, token mortise.Token) (bool, error) {
	a, err := puts(ctx, d, query.AdminClient.Check, &query.HoldRequest{Key: []byte(key), Token: uint64(token)})
	return a.GetHeld(), err
}

func (d *derived) key(ctx context.Context, key string) (mortise.KeyInfo, error) {
	a, err := puts(ctx, d, query.AdminClient.Peek, &query.KeyRequest{Key: []byte(key)})
	keys, err := keysIn(a, err)
	if err != nil || len(keys) == 0 {
		return mortise.KeyInfo{Key: key}, err
	}
	return keys[0], nil
}

func (d *derived) keys(ctx context.Context, prefix string) (list []mortise.KeyInfo, more bool, err error) {
	return firstKeys(func(yield func(mortise.KeyInfo, error) bool) {
		q := &query.ListRequest{Prefix: []byte(prefix)}
		for more := true; more; {
			a, err := puts(ctx, d, query.AdminClient.List, q)
			some, err := keysIn(a, err)
			if err != nil {
				yield(mortise.KeyInfo{}, err)
				return
			}
			for _, k := range some {
				if !yield(k, nil) {
					return
				}
			}
			q.Next, more = a.Next, a.More
		}
	})
}

func (d *derived) ids(context.Context, int) (uint64, error) {
	return 0, fmt.Errorf("%w: it cannot take IDs: use the agent with a token, or without a secret", errNotForPrograms)
}

func keysIn(a *query.KeysAnswer, err error) (keys []mortise.KeyInfo, _ error) {
	if err != nil {
		return nil, err
	}
	return keys, json.Unmarshal(a.Keys, &keys)
}

// watch continues after a change of the leader. It ends when ctx ends, or with an error if the
// program has no right to read the events.
func (d *derived) watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	return func(yield func(mortise.Event, error) bool) {
		q := &query.WatchRequest{Prefixes: [][]byte{[]byte(prefix)}, After: after}
		for {
			a, events, err := nextEvents(ctx, d.guest, q)
			if err = guest.Refusal(err); ctx.Err() != nil {
				err = ctx.Err()
			} else if errors.Is(err, mortise.ErrNotReady) {
				continue // the next query may find a leader
			}
			if err != nil {
				yield(mortise.Event{}, err)
				return
			}
			if len(events) == 0 && !a.Missed {
				events = []mortise.Event{{Position: a.Position, Kind: mortise.EventCurrent}}
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if q.After = a.Position; a.Missed {
				q.After = 0
			}
		}
	}
}

func (d *derived) status(ctx context.Context) (mortise.Status, error) {
	a, err := d.here(ctx)
	if err == nil {
		err = guest.Denied(a)
	}
	var s mortise.Status
	if err == nil {
		err = json.Unmarshal(a.Status, &s)
	}
	if failed := a.GetFailed(); failed != "" {
		s.Err = errors.New(failed)
	}
	return s, err
}

func (d *derived) health(ctx context.Context) (h mortise.Health, err error) {
	a, err := puts(ctx, d, query.AdminClient.Health, &query.StateRequest{})
	if err == nil {
		err = json.Unmarshal(a.Health, &h)
	}
	return h, err
}

func (d *derived) ready(context.Context) error {
	return fmt.Errorf("%w: it cannot ask whether the agent is ready", errNotForPrograms)
}
