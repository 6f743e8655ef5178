package mortise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
	"os"
	"strconv"
	"log/slog"
)

func TestScratchLoss(t *testing.T) {
	loss, _ := strconv.ParseFloat(os.Getenv("LOSS"), 64)
	rounds, _ := strconv.Atoi(os.Getenv("ROUNDS"))
	rto := 200 * time.Millisecond
	var mu sync.Mutex
	out := map[string][]time.Duration{}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3, func(c *Config) { if os.Getenv("LOG")=="" {c.Logger = slog.New(slog.DiscardHandler)}; c.SessionTTL=10*time.Second; c.Replicas=0; c.Founders=[]string{"node-0","node-1","node-2"} })
			f.unjudged = true
			f.net.SetLatency(50 * time.Millisecond)
			f.net.SetLost(func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				d := time.Duration(0)
				for rand.Float64() < loss {
					d += rto
				}
				return d
			})
			time.Sleep(20 * time.Second)
			leader := f.leader()
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var times []time.Duration
			began := time.Now()
			for i, n := range f.nodes {
				if i == leader {
					continue
				}
				for c := range 6 {
				wg.Go(func() {
					for k := 0; ctx.Err() == nil; k++ {
						l, err := n.Lock(ctx, fmt.Sprintf("p/%d/%d", i, c))
						if err != nil {
							time.Sleep(10*time.Millisecond)
							continue
						}
						mu.Lock()
						times = append(times, time.Since(began))
						mu.Unlock()
						_ = l.Unlock(ctx)
						time.Sleep(20*time.Millisecond)
					}
				})
				}
			}
			gap := func(from, to time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				last, longest := from, time.Duration(0)
				for _, at := range times {
					if at < from || at > to { continue }
					longest = max(longest, at-last)
					last = at
				}
				return max(longest, to-last)
			}
			time.Sleep(5 * time.Second)
			at := time.Since(began)
			out["nothing"] = append(out["nothing"], gap(at-5*time.Second, at))
			if round%2 == 0 {
				f.isolate(leader)
			} else {
				f.crash(leader)
			}
			lastTerm := uint64(0)
			_ = lastTerm
			cand, elected := time.Duration(0), time.Duration(0)
			for time.Since(began) < at+8*time.Second {
				for i, n := range f.nodes {
					if n == nil || i == leader { continue }
					if r := n.replica.Load(); r != nil {
						ro := r.role.Load()
						if cand == 0 && ro.Leader == 0 { cand = time.Since(began)-at }
						if elected == 0 && ro.Leading { elected = time.Since(began)-at }
					}
				}
				time.Sleep(10*time.Millisecond)
			}
			first := time.Duration(0)
			mu.Lock()
			for _, x := range times { if x > at+elected { first = x-at; break } }
			mu.Unlock()
			kind := "cut"
			if round%2 == 1 { kind = "killed" }
			out[kind+" 1 leaderless"] = append(out[kind+" 1 leaderless"], cand)
			out[kind+" 2 elected after"] = append(out[kind+" 2 elected after"], elected-cand)
			out[kind+" 3 grant after"] = append(out[kind+" 3 grant after"], first-elected)
			g := gap(at, time.Since(began))
			if round%2 == 0 {
				out["cut"] = append(out["cut"], g)
				f.rejoin(leader)
			} else {
				out["killed"] = append(out["killed"], g)
			}
			cancel()
			f.net.SetLatency(0)
			f.net.SetLost(nil)
			wg.Wait()
		})
		})
	}
	for k, v := range out {
		slices.Sort(v)
		fmt.Println(k, len(v), "median", v[len(v)/2].Round(time.Millisecond), "p90", v[len(v)*9/10].Round(time.Millisecond), "max", v[len(v)-1].Round(time.Millisecond))
	}
}
