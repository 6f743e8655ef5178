package limits_test

import (
	"context"
	"log/slog"
	"math"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/memnet"
	"github.com/mortise-lock/mortise/internal/outside"
)

// TestEveryInput tries the inputs of all public packages of the root module. The trials run in fake
// time where they wait.
func TestEveryInput(t *testing.T) {
	limits.Trials{
		Durations: merge(rootDurations, runDurations),
		Counts:    merge(rootCounts, packageCounts),
		Paths:     pathTrials,
		Exempt: map[string]string{
			"MissingVoter.Silent": told, "IdleHold.Idle": told, "IdleHold.MaxIdle": told,
			"Config.Format(verb)": "a verb of package fmt", "Node.Format(_)": "a verb of package fmt",
			"Lock.Put(revision)": revision, "Node.Put(revision)": revision, "Node.Watch(after)": revision,
			"stripe.Set.At(i)":                "an index, which the set checks",
			"fence.Row.Condition(n)":          "the number of a placeholder, which becomes text",
			"stripe.Key(n)":                   "New has its limit; Key has no error",
			"mortisetest.New(n)":              "256 nodes are too many for a trial",
			"mortisetest.NewWith(n)":          "256 nodes are too many for a trial",
			"mortisetest.Cluster.Await(held)": waited, "mortisetest.Cluster.Await(waiting)": waited,
			"mortisetest.Cluster.AwaitHolder(i)": index, "mortisetest.Cluster.Cut(i)": index,
			"mortisetest.Cluster.Cut(j)": index, "mortisetest.Cluster.CutOneWay(from)": index,
			"mortisetest.Cluster.CutOneWay(to)": index, "mortisetest.Cluster.Drift(i)": index,
			"mortisetest.Cluster.Isolate(nodes)": index, "mortisetest.Cluster.Kill(i)": index,
			"mortisetest.Cluster.Leap(i)": index, "mortisetest.Cluster.Lose(i)": index,
			"mortisetest.Cluster.Node(i)": index, "mortisetest.Cluster.Pause(i)": index,
			"mortisetest.Cluster.Ready(nodes)": index, "mortisetest.Cluster.Resume(i)": index,
			"mortisetest.Cluster.Start(i)": index,
		},
	}.Run(t, "../../..")
}

const (
	revision = "a revision of the group, which is only compared"
	index    = "an index of a node; a wrong one ends the user's test"
	waited   = "a number that the user's test waits for"
	told     = "a part of Health or Status, which programs only read"
)

func merge[V any](all ...map[string]V) map[string]V {
	merged := map[string]V{}
	for _, m := range all {
		for name, v := range m {
			merged[name] = v
		}
	}
	return merged
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// start starts a node of a group of its own, which the end of the test closes. It must be called in
// a bubble.
func start(t *testing.T, c mortise.Config) (*mortise.Node, *memnet.Network, error) {
	network := memnet.New()
	if c.Grace == 0 {
		c.Grace = -1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n, err := mortise.Start(outside.In(t.Context(), outside.World{
		Clock:   clock.Monotonic(),
		Listen:  func(address string) (net.Listener, error) { return network.Listen(address) },
		Dial:    network.Dialer("10.0.0.1"),
		Resolve: func(_ context.Context, host string) ([]string, error) { return []string{host}, nil },
	}), c)
	if err == nil {
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return n, network, err
}

func ready(t *testing.T) *mortise.Node {
	t.Helper()
	n, _, err := start(t, mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// refusedBy is the trial of a field of Config whose limit is below all tried durations.
func refusedBy(field string, set func(c *mortise.Config, d time.Duration)) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		var c mortise.Config
		set(&c, d)
		bubble(t, func(t *testing.T) {
			_, _, err := start(t, c)
			limits.Refused(t, err, field)
		})
	}
}

func refusedRequest(field string, set func(r *mortise.Request, d time.Duration)) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		r := mortise.Request{Key: "k"}
		set(&r, d)
		bubble(t, func(t *testing.T) {
			_, err := ready(t).Acquire(t.Context(), r)
			limits.Refused(t, err, field)
		})
	}
}

func refusedResume(field string, set func(o *mortise.ResumeOptions, d time.Duration)) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		var o mortise.ResumeOptions
		set(&o, d)
		bubble(t, func(t *testing.T) {
			_, err := ready(t).Resume(t.Context(), "k", 1, o)
			limits.Refused(t, err, field)
		})
	}
}

// tryResumedMaxHold checks that a resumed hold with a long MaxHold is held after a minute.
func tryResumedMaxHold(t *testing.T, n *mortise.Node, d time.Duration) {
	held, err := n.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := n.Resume(t.Context(), "k", held.Token(), mortise.ResumeOptions{MaxHold: d})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

var rootDurations = map[string]func(*testing.T, time.Duration){
	"Config.SessionTTL": refusedBy("SessionTTL", func(c *mortise.Config, d time.Duration) { c.SessionTTL = d }),
	"Config.Grace":      refusedBy("Grace", func(c *mortise.Config, d time.Duration) { c.Grace = d }),
	"Config.StickyUnused": refusedBy("StickyUnused",
		func(c *mortise.Config, d time.Duration) { c.StickyUnused = d }),
	"Request.LockDelay": refusedRequest("LockDelay",
		func(r *mortise.Request, d time.Duration) { r.LockDelay = d }),
	"Request.JeopardyGrace": refusedRequest("JeopardyGrace",
		func(r *mortise.Request, d time.Duration) { r.JeopardyGrace = d }),
	"ResumeOptions.LockDelay": refusedResume("LockDelay",
		func(o *mortise.ResumeOptions, d time.Duration) { o.LockDelay = d }),
	"ResumeOptions.JeopardyGrace": refusedResume("JeopardyGrace",
		func(o *mortise.ResumeOptions, d time.Duration) { o.JeopardyGrace = d }),
	"ResumeOptions.MaxHold": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) { tryResumedMaxHold(t, ready(t), d) })
	},
	"ResumeOptions.MaxIdle": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) { tryResumedMaxIdle(t, ready(t), d) })
	},
	"Request.MaxIdle": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) { tryMaxIdle(t, ready(t), d) })
	},
	"Request.MaxHold": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) { tryMaxHold(t, ready(t), d) })
	},
	// The group grants at most its own TTL.
	"Node.NewSession(ttl)": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			s, err := ready(t).NewSession(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if ttl := s.TTL(); ttl < time.Second || ttl > 10*time.Minute {
				t.Errorf("the TTL is %v", ttl)
			}
			lock, err := s.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if err := lock.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	},
}

// tryMaxIdle checks that a hold with a long MaxIdle goes on for a minute without a Beat, or that a
// short MaxIdle is refused.
func tryMaxIdle(t *testing.T, n *mortise.Node, d time.Duration) {
	heldForAMinute(t, d)(n.Acquire(t.Context(), mortise.Request{Key: "k", MaxIdle: d}))
}

func tryResumedMaxIdle(t *testing.T, n *mortise.Node, d time.Duration) {
	held, err := n.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	heldForAMinute(t, d)(n.Resume(t.Context(), "k", held.Token(), mortise.ResumeOptions{MaxIdle: d}))
}

func heldForAMinute(t *testing.T, d time.Duration) func(*mortise.Lock, error) {
	return func(lock *mortise.Lock, err error) {
		if err != nil {
			limits.Refused(t, err, "MaxIdle")
			return
		}
		time.Sleep(time.Minute)
		if err := lock.Unlock(t.Context()); (err == nil) != (d == 0 || d > 50*time.Second) {
			t.Error(err)
		}
	}
}

// tryMaxHold checks that all handles with a long MaxHold are held after a minute.
func tryMaxHold(t *testing.T, n *mortise.Node, d time.Duration) {
	ctx := t.Context()
	acquire := func(r mortise.Request, ctx context.Context) *mortise.Lock {
		t.Helper()
		r.MaxHold = d
		lock, err := n.Acquire(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	outer := acquire(mortise.Request{Key: "a"}, ctx)
	again := acquire(mortise.Request{Key: "a"}, outer.Context(ctx))
	shared := acquire(mortise.Request{Key: "b", Mode: mortise.Shared}, ctx)
	upgradable := acquire(mortise.Request{Key: "c", Mode: mortise.Upgradable}, ctx)
	permit := acquire(mortise.Request{Key: "d", Mode: mortise.Permits(1, 2)}, ctx)
	path := acquire(mortise.Request{Key: "e/f", Tree: true}, ctx)
	upgraded, err := upgradable.Upgrade(ctx)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	for i, lock := range []*mortise.Lock{again, outer, shared, upgraded, upgradable, permit, path} {
		if err := lock.Err(); err != nil {
			t.Errorf("lock %d: %v", i, err)
		}
		if err := lock.Unlock(ctx); err != nil {
			t.Errorf("unlock %d: %v", i, err)
		}
	}
}

// configCount is the trial of a count of Config.
func configCount(limit int64, names string, set func(c *mortise.Config, n int64)) limits.Count {
	return limits.Count{Limit: limit, Names: names, Try: func(t *testing.T, n int64) (err error) {
		bubble(t, func(t *testing.T) {
			var c mortise.Config
			set(&c, n)
			_, _, err = start(t, c)
		})
		return err
	}}
}

func odd(c limits.Count) limits.Count { c.Step = 2; return c }

func requestCount(limit int64, names string, set func(r *mortise.Request, n int64)) limits.Count {
	return limits.Count{Limit: limit, Names: names, Try: func(t *testing.T, n int64) (err error) {
		bubble(t, func(t *testing.T) {
			r := mortise.Request{Key: "k"}
			set(&r, n)
			var lock *mortise.Lock
			if lock, err = ready(t).Acquire(t.Context(), r); err == nil {
				err = lock.Unlock(t.Context())
			}
		})
		return err
	}}
}

var rootCounts = map[string]limits.Count{
	"Config.DirFreeBytes": configCount(math.MaxInt64, "", func(c *mortise.Config, n int64) { c.DirFreeBytes = n }),
	"Config.MaxGroupBytes": configCount(1<<40, "MaxGroupBytes",
		func(c *mortise.Config, n int64) { c.MaxGroupBytes = n }),
	"Config.MaxSessionBytes": configCount(1<<40, "MaxSessionBytes",
		func(c *mortise.Config, n int64) { c.MaxSessionBytes = n }),
	"Config.MaxWaiting": configCount(65_536, `MaxWaiting["k"]`,
		func(c *mortise.Config, n int64) { c.MaxWaiting = map[string]int{"k": int(n)} }),
	"Config.Replicas": configCount(16, "Replicas", func(c *mortise.Config, n int64) {
		c.Replicas, c.Bind, c.Join, c.Insecure = int(n), "10.0.0.1:7947", []string{"10.0.0.1:7947"}, true
	}),
	"Config.Voters":      odd(configCount(7, "Voters", func(c *mortise.Config, n int64) { c.Voters = int(n) })),
	"Config.StickyLocks": configCount(math.MaxInt64, "", func(c *mortise.Config, n int64) { c.StickyLocks = int(n) }),
	"Request.MaxWaiting": requestCount(1<<30, "MaxWaiting", func(r *mortise.Request, n int64) { r.MaxWaiting = int(n) }),
	"Permits(of)": requestCount(1<<30, "Mode",
		func(r *mortise.Request, n int64) { r.Mode = mortise.Permits(1, int(n)) }),
	"Permits(n)": requestCount(1<<30, "Mode",
		func(r *mortise.Request, n int64) { r.Mode = mortise.Permits(int(n), 1<<30) }),
	"Node.IDs(count)": {Limit: 65_536, Names: "count", Try: func(t *testing.T, n int64) (err error) {
		bubble(t, func(t *testing.T) { _, err = ready(t).IDs(t.Context(), int(n)) })
		return err
	}},
}

func init() {
	if strconv.IntSize != 64 {
		panic("the trials need 64-bit integers")
	}
}
