package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/flight"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/tick"
)

func startNodes(t *testing.T, n int) ([]*mortise.Node, *fleet) {
	f := startFleet(t, n)
	var nodes []*mortise.Node
	for _, n := range f.nodes {
		nodes = append(nodes, n.Node)
	}
	return nodes, f
}

// This file tests packages that use the exported names of package mortise, on whole nodes in fake
// time.

// TestTicksOnWholeNodes runs a job once per tick on three nodes whose clocks differ by up to 4 s.
// One node crashes in the middle of a tick, which another node must run.
func TestTicksOnWholeNodes(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		nodes, f := startNodes(t, 3)
		var mu sync.Mutex
		var runs []string
		var tokens []mortise.Token
		var all sync.WaitGroup
		base := time.Now().Truncate(time.Minute)
		takes := time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(time.Until(base.Add(30 * time.Second))) // the tick at base has ended
		for i, node := range nodes {
			off := []time.Duration{0, 2 * time.Second, -2 * time.Second}[i]
			job := tick.Job{
				Name: "report", Schedule: tick.Every(time.Minute), Late: 20 * time.Second,
				Now: func() time.Time { return time.Now().Add(off) },
				Run: func(ctx context.Context, at tick.Tick) error {
					mu.Lock()
					runs = append(runs, fmt.Sprintf("%d@%v", i, at.Time.Sub(base)))
					tokens = append(tokens, at.Token)
					takes := takes
					mu.Unlock()
					select {
					case <-time.After(takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				},
			}
			all.Go(func() {
				if err := tick.Run(ctx, node, job); !errors.Is(err, context.Canceled) &&
					!errors.Is(err, mortise.ErrClosed) && !errors.Is(err, mortise.ErrLeaving) {
					t.Errorf("node %d: Run returned %v", i, err)
				}
			})
		}
		time.Sleep(time.Until(base.Add(3*time.Minute + 40*time.Second)))
		mu.Lock()
		takes = 3 * time.Second
		mu.Unlock()
		// Now node 1 is in the middle of the fourth tick.
		time.Sleep(time.Until(base.Add(4*time.Minute - time.Second)))
		f.crash(1)
		time.Sleep(time.Until(base.Add(5*time.Minute + 40*time.Second)))
		cancel()
		all.Wait()
		want := "1@1m0s 1@2m0s 1@3m0s 1@4m0s 0@4m0s 0@5m0s"
		if got := strings.Join(runs, " "); got != want {
			t.Errorf("ran %s; want %s", got, want)
		}
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("tokens do not rise: %v", tokens)
			}
		}
	})
}

// TestLeavingEndsWhatStandsOnANode checks that Leave ends two calls: a Run of package tick that
// waits for the next day, and a Do of package flight whose function still runs.
func TestLeavingEndsWhatStandsOnANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := startNodes(t, 3)
		ended := make(chan error, 2)
		go func() {
			ended <- tick.Run(t.Context(), nodes[2], tick.Job{Name: "nightly", Schedule: tick.Every(24 * time.Hour),
				Late: time.Millisecond, Run: func(context.Context, tick.Tick) error { return nil }})
		}()
		pages := flight.New[string](nodes[2])
		go func() {
			_, err := pages.Do(t.Context(), "page", func(context.Context) (string, bool, error) {
				return "", false,
					nil
			},
				func(ctx context.Context, _ mortise.Token) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
			ended <- err
		}()
		time.Sleep(time.Second)
		if err := nodes[2].Leave(t.Context()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, mortise.ErrLeaving) {
				t.Errorf("ended with %v", err)
			}
		}
		pages.Close()
	})
}

func TestAFlightOnWholeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := startNodes(t, 3)
		var mu sync.Mutex
		page, computed := "", 0
		var callers sync.WaitGroup
		for _, node := range nodes {
			pages := flight.New[string](node)
			for range 10 {
				callers.Go(func() {
					got, err := pages.Do(t.Context(), "page", func(context.Context) (string, bool, error) {
						mu.Lock()
						defer mu.Unlock()
						return page, page != "", nil
					}, func(_ context.Context, token mortise.Token) (string, error) {
						time.Sleep(time.Second)
						mu.Lock()
						defer mu.Unlock()
						page, computed = "the page", computed+1
						return page, nil
					})
					if got != "the page" || err != nil {
						t.Errorf("got %q, %v", got, err)
					}
				})
			}
			defer pages.Close()
		}
		callers.Wait()
		if computed != 1 {
			t.Errorf("computed %d times", computed)
		}
	})
}
