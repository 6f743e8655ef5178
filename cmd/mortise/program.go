package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/desk"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport"
)

// This file is what a program with a derived secret does over its guest, as asks.

var errNotForPrograms = errors.New("a program with a derived secret cannot do this")

// begin opens the guest and its session. The first question proves the secret: the cluster answers
// it, or the handshake fails.
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

// close gives back what the program holds, and ends the guest.
func (p *program) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = p.session.Close(ctx) // or it runs out by itself
	_ = p.guest.Close()
}

// here returns the picture of the first instance that answers: the agent's own, where that has a port.
func (p *program) here(ctx context.Context) (desk.Answer, error) {
	places, errs := p.guest.Places(ctx)
	for _, place := range places {
		asking, cancel := context.WithTimeout(ctx, answerSoon)
		a, err := p.guest.Ask(asking, place.Addr, desk.Question{Op: desk.Here})
		cancel()
		if err == nil && a.Error == "" {
			return a, nil
		}
		if err == nil {
			err = errors.New(a.Error)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if errors.Is(err, transport.ErrForeign) {
		return desk.Answer{}, fmt.Errorf("%w by the cluster: %w", errBadSecret, err)
	}
	return desk.Answer{}, fmt.Errorf("%w: no instance answers: %w", mortise.ErrNotReady, err)
}

// put asks a question that needs a leader.
func (p *program) put(ctx context.Context, q desk.Question) (desk.Answer, error) {
	a, err := p.guest.Put(ctx, q)
	return a, mended(a, err)
}

// mended marks an error that no repetition mends as the program's own mistake.
func mended(a desk.Answer, err error) error {
	if err != nil && a.Kind == desk.Wrong {
		return bad("%s", strings.TrimPrefix(err.Error(), mortise.ErrBadRequest.Error()+": "))
	}
	return err
}

func (p *program) acquire(ctx context.Context, r mortise.Request) (holding, error) {
	switch {
	case len(r.Keys) > 0:
		return nil, fmt.Errorf("%w: lock several keys at once: lock them one by one, by key", errNotForPrograms)
	case r.MaxHold > 0:
		return nil, fmt.Errorf("%w: set max_hold_seconds", errNotForPrograms)
	}
	lock, err := p.session.Acquire(ctx, r)
	if err != nil {
		return nil, err // not a holding that is nil inside
	}
	return lock, nil
}

func (p *program) check(ctx context.Context, key string, token mortise.Token) (bool, error) {
	k, err := p.key(ctx, key)
	if err != nil {
		return false, err
	}
	held := func(s mortise.Standing) bool { return s.Token == token && s.Token != 0 && !s.Expired }
	if slices.ContainsFunc(k.Queue, held) {
		return true, nil
	}
	if k.Held > len(k.Queue) {
		return false, fmt.Errorf("%w: check one of %d who share a key: ask by the lease", errNotForPrograms, k.Held)
	}
	return false, nil
}

func (p *program) key(ctx context.Context, key string) (mortise.KeyInfo, error) {
	keys, _, err := p.page(ctx, &desk.Question{Op: desk.Peek, Key: key})
	if err != nil || len(keys) == 0 {
		return mortise.KeyInfo{Key: key}, err
	}
	return keys[0], nil
}

func (p *program) keys(ctx context.Context, prefix string) (list []mortise.KeyInfo, more bool, err error) {
	q := &desk.Question{Op: desk.List, Key: prefix}
	for more = true; more && len(list) <= keysMost; {
		var page []mortise.KeyInfo
		if page, more, err = p.page(ctx, q); err != nil {
			return nil, false, err
		}
		list = append(list, page...)
	}
	return list[:min(len(list), keysMost)], len(list) > keysMost, nil
}

// page asks for keys, and sets q to the next page.
func (p *program) page(ctx context.Context, q *desk.Question) (keys []mortise.KeyInfo, more bool, err error) {
	a, err := p.put(ctx, *q)
	if err != nil {
		return nil, false, err
	}
	q.Next = a.Next
	err = json.Unmarshal(a.Keys, &keys)
	return keys, a.More, err
}

// watch goes on over changes of leader. It ends with what the program may not see, and with ctx.
func (p *program) watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	return func(yield func(mortise.Event, error) bool) {
		q := desk.Question{Op: desk.Watch, Key: prefix, After: after}
		for {
			a, events, err := nextEvents(ctx, p.guest, q)
			if err = mended(a, err); ctx.Err() != nil {
				err = ctx.Err()
			} else if errors.Is(err, mortise.ErrNotReady) {
				continue // it may come back
			}
			if err != nil {
				yield(mortise.Event{}, err)
				return
			}
			if len(events) == 0 && !a.Missed {
				events = []mortise.Event{{Position: a.Position, What: mortise.EventCurrent}}
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
	if a.Failed != "" {
		s.Err = errors.New(a.Failed)
	}
	return s, err
}

func (p *program) health(ctx context.Context) (h mortise.Health, err error) {
	a, err := p.put(ctx, desk.Question{Op: desk.Health})
	if err == nil {
		err = json.Unmarshal(a.Health, &h)
	}
	return h, err
}

func (p *program) ready(context.Context) error {
	return fmt.Errorf("%w: ask whether the agent is ready", errNotForPrograms)
}
