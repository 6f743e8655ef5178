package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// limits returns the requests of a job under three limits: 1 for the order, 5 for the tenant, 40 in
// all, the narrowest first. The jobs that wait for their tenant then take no place of all.
//
// One request for all three would wait inside each queue in which it fits, and take permits there:
// 40 requests for one hot order would take all 40 places, and one job would run.
func limits(order, tenant string) []mortise.Request {
	return []mortise.Request{
		{Key: "orders/" + order},
		{Key: "tenants/" + tenant, Mode: mortise.Permits(1, 5)},
		{Key: "all", Mode: mortise.Permits(1, 40)},
	}
}

// TestATenantsQueueDelaysNoOtherTenant queues 100 jobs of one tenant under three limits. A job of
// another tenant must begin as early as on a group without other jobs, with at most one more round
// trip. So must a job of the first tenant, if the order of all others is hot.
func TestATenantsQueueDelaysNoOtherTenant(t *testing.T) {
	slow.UnderRace(t)
	const latency, work = 20 * time.Millisecond, 5 * time.Second
	for name, order := range map[string]func(i int) string{
		"an order for each job": func(i int) string { return fmt.Sprint("busy/", i) },
		"one hot order":         func(int) string { return "busy/hot" },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				f.net.SetLatency(latency)
				time.Sleep(time.Second)
				starts := func(node int, tenant, order string) time.Duration {
					t.Helper()
					begun, took := time.Now(), time.Duration(0)
					err := f.nodes[node].DoNested(t.Context(), limits(order, tenant),
						func(context.Context, mortise.Token) error {
							took = time.Since(begun)
							return nil
						})
					if err != nil {
						t.Error(err)
					}
					return took
				}
				idle := []time.Duration{starts(0, "quiet", "a"), starts(1, "quiet", "a"), starts(2, "quiet", "a")}
				var jobs sync.WaitGroup
				var ran atomic.Int32
				for i := range 100 {
					jobs.Go(func() {
						err := f.nodes[i%3].DoNested(t.Context(), limits(order(i), "busy"),
							func(context.Context, mortise.Token) error {
								ran.Add(1)
								time.Sleep(work)
								return nil
							})
						if err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(time.Second)
				for node := range 3 {
					for i := range 3 {
						took := starts(node, "quiet", fmt.Sprint("quiet/", i))
						t.Logf("node %d: %v idle, %v behind the jobs of another tenant", node, idle[node], took)
						if took > idle[node]+2*latency {
							t.Errorf("node %d: the job began after %v, and after %v without the jobs", node, took, idle[node])
						}
					}
				}
				if name == "one hot order" {
					if took := starts(0, "busy", "busy/cold"); took > idle[0]+2*latency {
						t.Errorf("another order of the tenant waited %v for the hot one", took)
					}
				}
				if begun := ran.Load(); begun == 0 || begun > 5 {
					t.Errorf("%d jobs of the tenant have begun", begun)
				}
				jobs.Wait()
				f.nothingLeft()
			})
		})
	}
}

// TestNestedLimitsNeverDeadlock lets 64 callers on three nodes work under three limits. No caller
// may be refused, and none may wait for longer than the work of all others takes. The judge of the
// fleet checks the history.
func TestNestedLimitsNeverDeadlock(t *testing.T) {
	slow.UnderRace(t)
	const callers, rounds, tenants, work = 64, 12, 3, 50 * time.Millisecond
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.net.SetLatency(time.Millisecond)
		var all sync.WaitGroup
		var places [tenants + 1]atomic.Int32 // the places in use: one for each tenant, the last for all
		enter := func(at, most int) {
			if now := places[at].Add(1); int(now) > most {
				t.Errorf("%d hold place %d", now, at)
			}
		}
		for i := range callers {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 50))
				for range rounds {
					tenant := r.IntN(tenants)
					requests := limits(fmt.Sprint(tenant, "/", r.IntN(4)), fmt.Sprint(tenant))
					requests[2].Mode = mortise.Permits(1, 7)
					if r.IntN(4) == 0 {
						requests[1].Mode = mortise.Permits(2, 5)
					}
					begun := time.Now()
					err := f.nodes[i%3].DoNested(t.Context(), requests, func(context.Context, mortise.Token) error {
						enter(tenant, 5)
						enter(tenants, 7)
						time.Sleep(time.Duration(r.Int64N(int64(work))))
						places[tenants].Add(-1)
						places[tenant].Add(-1)
						return nil
					})
					if took := time.Since(begun); err != nil || took > callers*(work+20*time.Millisecond) {
						t.Errorf("caller %d: %v after %v", i, err, took)
					}
				}
			})
		}
		all.Wait()
		f.nothingLeft()
	})
}

// TestDoNested checks the contract: tokens, the order of the releases, and what ends the function.
func TestDoNested(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		node, requests := f.nodes[0], limits("1", "1")
		held := func(key string) bool {
			info, err := f.nodes[1].Peek(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return len(info.Queue) > 0
		}
		free := func(what string) {
			t.Helper()
			for _, r := range requests {
				if held(r.Key) {
					t.Errorf("%s: %s is held", what, r.Key)
				}
			}
		}
		ran := func(err error) func(context.Context, mortise.Token) error {
			return func(ctx context.Context, token mortise.Token) error {
				order, err2 := node.Peek(ctx, requests[0].Key)
				inner, _ := mortise.TokenFrom(ctx)
				if err2 != nil || len(order.Queue) != 1 || order.Queue[0].Token != token || inner != token {
					t.Errorf("token %d, %d in the context; %+v, %v", token, inner, order.Queue, err2)
				}
				for _, r := range requests {
					if !held(r.Key) {
						t.Errorf("%s is not held", r.Key)
					}
				}
				again, err2 := node.TryLock(ctx, requests[0].Key) // made under the locks
				if err2 != nil || again.Token() != token {
					t.Errorf("entered again: %v", err2)
				} else {
					unlock(t, again)
				}
				return err
			}
		}
		if err := node.DoNested(t.Context(), requests, ran(nil)); err != nil {
			t.Error(err)
		}
		free("after success")
		own := errors.New("own")
		if err := node.DoNested(t.Context(), requests, ran(own)); !errors.Is(err, own) {
			t.Error(err)
		}
		free("after an error")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_ = node.DoNested(t.Context(), requests, func(context.Context, mortise.Token) error { panic("own") })
		}()
		free("after a panic")
		never := func(context.Context, mortise.Token) error {
			t.Error("the function ran")
			return nil
		}
		if err := node.DoNested(t.Context(), nil, never); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("no request: %v", err)
		}
		other := f.acquire(2, requests[0])
		begun := time.Now()
		wrong := append(limits("1", "1"), mortise.Request{Key: "x", Mode: mortise.Permits(2, 1)})
		if err := node.DoNested(t.Context(), wrong, never); !errors.Is(err, mortise.ErrBadRequest) || time.Since(begun) != 0 {
			t.Errorf("a mistake in the last request: %v after %v", err, time.Since(begun))
		}
		unlock(t, other)
		for i := range requests { // each one fails
			other := f.acquire(2, mortise.Request{Key: requests[i].Key})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := node.DoNested(ctx, requests, never)
			if cancel(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), requests[i].Key) {
				t.Errorf("request %d cannot be granted: %v", i, err)
			}
			unlock(t, other)
			time.Sleep(time.Second)
			free("after a request that failed")
		}
		f.nothingLeft()
	})
}

// TestDoNestedEndsWithEachLock ends each of the locks by force, while the function runs and while
// the next lock is awaited.
func TestDoNestedEndsWithEachLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		requests := limits("1", "1")
		force := func(key string) {
			info, err := f.nodes[1].Peek(t.Context(), key)
			if err != nil || len(info.Queue) == 0 {
				t.Fatalf("%s: %+v, %v", key, info, err)
			}
			if _, err := f.nodes[1].ForceUnlock(t.Context(), key, info.Queue[0].Token, "test"); err != nil {
				t.Fatal(err)
			}
		}
		var forced *mortise.ForcedError
		for i, r := range requests {
			err := f.nodes[0].DoNested(t.Context(), requests, func(ctx context.Context, _ mortise.Token) error {
				force(r.Key)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
					t.Errorf("the context lives without lock %d", i)
				}
				return context.Cause(ctx)
			})
			if !errors.As(err, &forced) || strings.Count(err.Error(), "by force") != 1 {
				t.Errorf("lock %d was ended: %v", i, err)
			}
			if i == 0 {
				continue
			}
			blocker := f.acquire(2, mortise.Request{Key: r.Key})
			told := make(chan error, 1)
			go func() {
				told <- f.nodes[0].DoNested(t.Context(), requests, func(context.Context, mortise.Token) error {
					t.Error("the function ran")
					return nil
				})
			}()
			time.Sleep(time.Second)
			force(requests[0].Key)
			select {
			case err := <-told:
				if !errors.As(err, &forced) {
					t.Errorf("the first lock was ended before lock %d: %v", i, err)
				}
			case <-time.After(time.Second):
				t.Errorf("lock %d is awaited without the first one", i)
			}
			unlock(t, blocker)
		}
		f.nothingLeft()
	})
}
