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

// crowdEach is how many sessions one process has, so that it needs no more files than processes
// usually may open.
const crowdEach = 4000

// A gathering is three members, each in a process of its own, and many light sessions in some more.
type gathering struct {
	members []*memberProcess
	leader  *memberProcess
	crowds  []*memberProcess
	before  map[*memberProcess]float64 // heap of each member without sessions
}

func (g *gathering) close() {
	for _, m := range slices.Concat(g.crowds, g.members) {
		m.kill()
	}
}

// gather starts three members and n sessions, and waits until all are attached.
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
	time.Sleep(lightTTL)                // what the beginning has stirred up; renewals are spread by then
	g.leader, err = leaderOf(g.members) // a busy machine may have changed it
	return g, err
}

// tell has all crowds do something.
func (g *gathering) tell(what string) error {
	return together(len(g.crowds), func(i int) error {
		_, err := g.crowds[i].ask(what)
		return err
	})
}

// leaderOf asks each member whether it leads.
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

// number asks for a number.
func (m *memberProcess) number(question string) (float64, error) {
	text, err := m.ask(question)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// attachTime bounds how long n sessions may take to be attached.
func attachTime(n int) time.Duration { return 3*time.Minute + time.Duration(n)*20*time.Millisecond }

// sessions is a leader with many sessions at rest: its memory for each of them, stacks included,
// and its processor time in a second.
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
		time.Sleep(lightTTL) // until no link remembers its beginning
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

// storm kills the leader under many attached sessions. Took is until the last of them is attached
// again; P50 and P99 are of the waits for a free lock, from the kill to the last attachment, of
// callers whose session is attached again.
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
