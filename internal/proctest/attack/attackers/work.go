//go:build linux

package attackers

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// The attacks in this file are small commands of a guest with one right. What they make the voters
// visit is large: queues and holders that the same guest has made before.

const (
	manyWaiters = 10_000
	manyHolders = 50_000
	workRound   = 300 // commands of one burst
	workRounds  = 30  // bursts of one session, at most
	workPause   = time.Second

	// A guest that prepares an attack sends few commands at a time, so that it is not noticed.
	preparePause = 50 * time.Millisecond
)

// worker opens a session, prepares it, and makes bursts until one fails. A burst adds few commands.
func (a *attacker) worker(ctx context.Context, prepare, burst func(s *raw) error) (t Tally) {
	s, err := a.session(ctx, "worker")
	if err != nil {
		return refused(err)
	}
	defer s.close()
	if err = prepare(s); err != nil {
		return refused(err)
	}
	for n := 0; n < workRounds && ctx.Err() == nil; n++ {
		wait(ctx, workPause)
		t.Tried += workRound
		if err = burst(s); err == nil {
			err = s.renew()
		}
		select {
		case <-s.ended:
			err = errNotOpened
		default:
		}
		if err != nil {
			t.Refused++
			break
		}
	}
	return t
}

func (a *attacker) owners(ctx context.Context, _ known) Tally {
	return a.worker(ctx, func(s *raw) error {
		err := s.acquire(1, lockfsm.Command{Key: fmt.Sprintf("work/own/%d", s.id)})
		if err == nil {
			err = s.prepare(ctx, manyWaiters, lockfsm.Command{Key: "work/queue"})
		}
		return err
	}, func(s *raw) error {
		return s.acquire(workRound, lockfsm.Command{Key: "work/queue", Owner: 1})
	})
}

// prepare requests n locks slowly.
func (s *raw) prepare(ctx context.Context, n int, c lockfsm.Command) error {
	for n > 0 && ctx.Err() == nil {
		if err := s.acquire(min(batch, n), c); err != nil {
			return err
		}
		if n -= batch; n/batch%20 == 0 {
			if err := s.renew(); err != nil {
				return err
			}
		}
		wait(ctx, preparePause)
	}
	return nil
}

func shared(ctx context.Context, key string) func(s *raw) error {
	return func(s *raw) error {
		return s.prepare(ctx, manyHolders, lockfsm.Command{Key: key, Permits: 1})
	}
}

func (a *attacker) tokens(ctx context.Context, _ known) Tally {
	return a.worker(ctx, shared(ctx, "work/shared"),
		func(s *raw) error {
			return s.acquire(workRound, lockfsm.Command{Key: "work/shared", Token: 1 << 60})
		})
}

func (a *attacker) permits(ctx context.Context, _ known) Tally {
	one := lockfsm.Command{Key: "work/permits", Permits: 1, Of: 1 << 20}
	return a.worker(ctx, func(s *raw) error { return s.prepare(ctx, manyHolders, one) },
		func(s *raw) error {
			for range workRound / 2 {
				end := lockfsm.Command{Kind: lockfsm.Release, Session: s.id, Epoch: s.epoch, Number: s.next - 1}
				if err := s.send([]lockfsm.Command{end}); err != nil {
					return err
				}
				if err := s.acquire(1, one); err != nil {
					return err
				}
			}
			return nil
		})
}

func (a *attacker) attaches(ctx context.Context, _ known) Tally {
	return a.worker(ctx, shared(ctx, "work/attached"),
		func(s *raw) error { return s.attach(workRound) })
}

// checks asks for tokens that no hold has, of a key with many holders.
func (a *attacker) checks(ctx context.Context, _ known) Tally {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	h, err := a.guest(ctx, "worker")
	if err != nil {
		return refused(err)
	}
	results := make(chan error)
	const questions = 64
	for n := range questions {
		go func() {
			_, err := guest.Put(ctx, h.Guest, query.AdminClient.Check, &query.HoldRequest{
				Key: []byte("work/shared"), Token: 1<<60 + uint64(n),
			})
			results <- err
		}()
	}
	t := Tally{Tried: questions}
	for range questions {
		if <-results != nil {
			t.Refused++
		}
	}
	return t
}
