package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// crowdEach is the number of sessions in one process. It stays below the usual limit of open files.
const crowdEach = 4000

type gathering struct {
	members []*memberProcess
	leader  *memberProcess
	crowds  []*memberProcess
	before  map[*memberProcess]float64 // the heap of each member before sessions were opened
}

func (g *gathering) close() {
	for _, m := range slices.Concat(g.crowds, g.members) {
		m.kill()
	}
}

func gather(ctx context.Context, r *Run, n int) (g *gathering, err error) {
	g = &gathering{members: make([]*memberProcess, membersOf), before: map[*memberProcess]float64{}}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if err := roomFor(0, 2*uint64(n)*lightBytes); err != nil {
		return g, err
	}
	addresses, err := freeAddresses(membersOf * addressesEach)
	if err != nil {
		return g, err
	}
	err = together(membersOf, func(i int) (err error) {
		if g.members[i], err = startMember(ctx, r.Peer.Name, memberDir(filepath.Join(r.Dir, "gathering"), i),
			addresses, i); err == nil {
			_, err = g.members[i].ask("ready")
		}
		return err
	})
	if err != nil {
		return g, err
	}
	if g.leader, err = leaderOf(g.members); err != nil {
		return g, err
	}
	for _, m := range g.members {
		if g.before[m], err = m.number("heap"); err != nil {
			return g, err
		}
	}
	group, err := groupOf(g.leader)
	if err != nil {
		return g, err
	}
	for first := 0; first < n; first += crowdEach {
		text, err := json.Marshal(crowdOptions{Group: group, Encrypted: encrypted(r.Peer), First: first,
			N: min(crowdEach, n-first)})
		if err != nil {
			return g, err
		}
		c, err := startSelf(ctx, "-crowd", string(text))
		if err != nil {
			return g, err
		}
		g.crowds = append(g.crowds, c)
	}
	if err := g.tell("open"); err != nil {
		return g, err
	}
	time.Sleep(lightTTL)                // until the sessions have started and do not all renew at once
	g.leader, err = leaderOf(g.members) // the leader may have changed on a busy machine
	return g, err
}

func (g *gathering) tell(what string) error {
	return together(len(g.crowds), func(i int) error {
		_, err := g.crowds[i].ask(what)
		return err
	})
}

func leaderOf(members []*memberProcess) (*memberProcess, error) {
	for _, m := range members {
		if _, err := m.ask("lock warm"); err != nil {
			return nil, err
		}
		if answer, err := m.ask("leads"); err != nil {
			return nil, err
		} else if answer == "true" {
			return m, nil
		}
	}
	return nil, errors.New("none of the members leads")
}

func (m *memberProcess) number(question string) (float64, error) {
	text, err := m.ask(question)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

func attachTime(n int) time.Duration { return 3*time.Minute + time.Duration(n)*20*time.Millisecond }

// sessions measures a leader with n idle sessions: its memory per session, including stacks, and
// its processor time per second.
func sessions(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		n := r.scaled(n)
		began := time.Now()
		ctx, cancel := context.WithTimeout(ctx, attachTime(n))
		defer cancel()
		g, err := gather(ctx, r, n)
		if err != nil {
			return Result{}, err
		}
		defer g.close()
		result := Result{Count: float64(n), Took: time.Since(began)}
		time.Sleep(lightTTL) // until the buffers used for attaching are freed
		heap, err := g.leader.number("heap")
		if err != nil {
			return result, err
		}
		result.Heap = (heap - g.before[g.leader]) / float64(n)
		used, err := g.leader.number("cpu")
		if err != nil {
			return result, err
		}
		const span = 10 * time.Second
		time.Sleep(span)
		more, err := g.leader.number("cpu")
		result.CPU = time.Duration((more - used) / span.Seconds())
		return result, err
	}
}

// storm kills the leader while n sessions are attached. The field Took is the time until the last
// session is attached again. Until then, the sessions that are attached again lock free keys. P50
// and P99 are quantiles of the time that each of these calls takes.
func storm(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		n := r.scaled(n)
		ctx, cancel := context.WithTimeout(ctx, attachTime(n))
		defer cancel()
		g, err := gather(ctx, r, n)
		if err != nil {
			return Result{}, err
		}
		defer g.close()
		if err := g.tell("reset"); err != nil {
			return Result{}, err
		}
		began := time.Now()
		g.leader.kill()
		all := make([]returned, len(g.crowds))
		err = together(len(g.crowds), func(i int) error {
			text, err := g.crowds[i].ask("returns")
			return errors.Join(err, json.Unmarshal([]byte(text), &all[i]))
		})
		if err != nil {
			return Result{}, err
		}
		result := Result{Count: float64(n)}
		var waits histogram
		for _, r := range all {
			result.Took = max(result.Took, r.Last.Sub(began))
			for _, w := range r.Waits {
				waits.add(w)
			}
		}
		result.P50, result.P99 = waits.quantile(0.5), waits.quantile(0.99)
		return result, nil
	}
}
