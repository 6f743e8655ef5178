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
	manyHolders = 20_000
	workRounds  = 120 // bursts of one session, at most
	workPause   = time.Second

	// The preparation is slow, because these commands make no more work than those of others. In a
	// short campaign it ends after a third of the time, with fewer waiters and holders.
	prepareEach  = 100 // commands
	preparePause = 50 * time.Millisecond
	prepareShare = 3
)

// Numbers of commands of one burst.
const (
	ownersRound  = 300
	tokensRound  = 1_000
	permitsRound = 1_000
	attachRound  = 300
)

// worker opens a session, prepares it, and makes bursts of round commands until one fails.
func (a *attacker) worker(ctx context.Context, round int, prepare, burst func(s *raw) error) (t Tally) {
	s, err := a.session(ctx, "worker")
	if err != nil {
		return refused(err)
	}
	defer s.close()
	s.until = time.Now().Add(a.length / prepareShare)
	if err = prepare(s); err != nil {
		return refused(err)
	}
	for n := 0; n < workRounds && ctx.Err() == nil; n++ {
		wait(ctx, workPause)
		t.Tried += int64(round)
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
	return a.worker(ctx, ownersRound, func(s *raw) error {
		err := s.acquire(1, lockfsm.Command{Key: fmt.Sprintf("work/own/%d", s.id)})
		if err == nil {
			err = s.prepare(ctx, manyWaiters, lockfsm.Command{Key: "work/queue"})
		}
		return err
	}, func(s *raw) error {
		return s.acquire(ownersRound, lockfsm.Command{Key: "work/queue", Owner: 1})
	})
}

// prepare requests n locks slowly, or as many as it can before s.until.
func (s *raw) prepare(ctx context.Context, n int, c lockfsm.Command) error {
	for n > 0 && ctx.Err() == nil && time.Now().Before(s.until) {
		if err := s.acquire(min(prepareEach, n), c); err != nil {
			return err
		}
		if n -= prepareEach; n/prepareEach%20 == 0 {
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
	return a.worker(ctx, tokensRound, shared(ctx, "work/shared"),
		func(s *raw) error {
			return s.acquire(tokensRound, lockfsm.Command{Key: "work/shared", Token: 1 << 60})
		})
}

func (a *attacker) permits(ctx context.Context, _ known) Tally {
	one := lockfsm.Command{Key: "work/permits", Permits: 1, Of: 1 << 20}
	return a.worker(ctx, permitsRound, func(s *raw) error { return s.prepare(ctx, manyHolders, one) },
		func(s *raw) error {
			var all []lockfsm.Command
			for range permitsRound / 2 {
				again := one
				again.Kind, again.Session, again.Epoch, again.Number = lockfsm.Acquire, s.id, s.epoch, s.next
				all = append(all, lockfsm.Command{Kind: lockfsm.Release, Session: s.id, Epoch: s.epoch, Number: s.next - 1},
					again)
				s.next++
			}
			return s.send(all)
		})
}

func (a *attacker) attaches(ctx context.Context, _ known) Tally {
	return a.worker(ctx, attachRound, shared(ctx, "work/attached"),
		func(s *raw) error { return s.attach(attachRound) })
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
