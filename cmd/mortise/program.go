package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// The methods in this file act for a program with a derived secret, through the program's guest. A
// *program implements the interface asks.

// begin opens the guest and its session. If the secret is wrong, the handshake of the first query
// fails.
func (p *program) begin(ctx context.Context, config mortise.Config) (err error) {
	if p.guest, err = guest.Open(config); err != nil {
		return fmt.Errorf("%w: %w", errBadSecret, err)
	}
	for {
		if _, err = p.here(ctx); !errors.Is(err, mortise.ErrNotReady) || !sleep(ctx, openAgain) {
			break
		}
	}
	if err == nil {
		p.session, err = p.guest.Session(ctx)
	}
	if err != nil {
		return errors.Join(err, p.guest.Close())
	}
	return nil
}

func (p *program) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = p.session.Close(ctx) // if this fails, the session expires
	_ = p.guest.Close()
}

// The method here returns the status of the first instance that answers. If the agent has a port
// of its own, that instance is the agent.
func (p *program) here(ctx context.Context) (*query.HereAnswer, error) {
	places, errs := p.guest.Places(ctx)
	for _, place := range places {
		asking, cancel := context.WithTimeout(ctx, answerSoon)
		a, err := guest.Ask(asking, p.guest, place.Addr, query.AdminClient.Here, &query.HereRequest{})
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

func puts[Q, A any](ctx context.Context, p *program, method guest.Method[Q, A], q *Q) (*A, error) {
	a, err := guest.Put(ctx, p.guest, method, q)
	return a, guest.Refusal(err)
}

func (p *program) acquire(ctx context.Context, r wish) (holding, error) {
	var lock *guest.Lock
	var err error
	switch {
	case r.resume != 0:
		lock, err = p.session.Resume(ctx, r.Key, r.resume, r.resumed())
	case r.sticky:
		lock, err = p.session.LockSticky(ctx, r.Key, r.stuck())
	default:
		lock, err = p.session.Acquire(ctx, r.Request)
	}
	if err != nil {
		return nil, err // a holding that contains a nil lock is not equal to nil
	}
	return lock, nil
}

func (p *program) get(ctx context.Context, key string) ([]byte, uint64, error) {
	k, err := p.key(ctx, key)
	return k.Data, k.Revision, err
}

func (p *program) put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return p.guest.Data(ctx, nil, key, data, revision)
}

func (p *program) check(ctx context.Context, key string, token mortise.Token) (bool, error) {
	a, err := puts(ctx, p, query.AdminClient.Check, &query.HoldRequest{Key: []byte(key), Token: uint64(token)})
	return a.GetHeld(), err
}

func (p *program) key(ctx context.Context, key string) (mortise.KeyInfo, error) {
	a, err := puts(ctx, p, query.AdminClient.Peek, &query.KeyRequest{Key: []byte(key)})
	keys, err := keysIn(a, err)
	if err != nil || len(keys) == 0 {
		return mortise.KeyInfo{Key: key}, err
	}
	return keys[0], nil
}

func (p *program) keys(ctx context.Context, prefix string) (list []mortise.KeyInfo, more bool, err error) {
	return firstKeys(func(yield func(mortise.KeyInfo, error) bool) {
		q := &query.ListRequest{Prefix: []byte(prefix)}
		for more := true; more; {
			a, err := puts(ctx, p, query.AdminClient.List, q)
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

func (p *program) ids(context.Context, int) (uint64, error) {
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
func (p *program) watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	return func(yield func(mortise.Event, error) bool) {
		q := &query.WatchRequest{Prefixes: [][]byte{[]byte(prefix)}, After: after}
		for {
			a, events, err := nextEvents(ctx, p.guest, q)
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

func (p *program) status(ctx context.Context) (mortise.Status, error) {
	a, err := p.here(ctx)
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

func (p *program) health(ctx context.Context) (h mortise.Health, err error) {
	a, err := puts(ctx, p, query.AdminClient.Health, &query.StateRequest{})
	if err == nil {
		err = json.Unmarshal(a.Health, &h)
	}
	return h, err
}

func (p *program) ready(context.Context) error {
	return fmt.Errorf("%w: it cannot ask whether the agent is ready", errNotForPrograms)
}
