package mortisetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/flight"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/keep"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/presence"
	"github.com/mortise-lock/mortise/shard"
	"github.com/mortise-lock/mortise/stripe"
	"github.com/mortise-lock/mortise/tick"
)

// user is what the user of a package on top of a lock is told.
type user struct {
	begun chan struct{} // one signal for each begin of its work
	told  chan error
}

func (u *user) work(ctx context.Context) error {
	u.begun <- struct{}{}
	<-ctx.Done()
	u.tell(context.Cause(ctx))
	return context.Cause(ctx)
}

func (u *user) tell(err error) {
	select {
	case u.told <- err:
	default:
	}
}

// room is a package on top of a lock. The function use uses it until ctx ends, calls work while it
// has its lock, and gives back what it has. The package tells a user of a loss by the context of
// the work, and, if reports is set, also by a report.
type room struct {
	use     func(ctx context.Context, node *mortise.Node, u *user, report func(error)) error
	reports bool
}

func rooms() map[string]room {
	return map[string]room{
		"election": {reports: true, use: func(ctx context.Context, n *mortise.Node, u *user, report func(error)) error {
			o := election.Options{Report: func(_ mortise.Token, err error) { report(err) }}
			return election.New(n, "e", o).Run(ctx, "v", func(ctx context.Context, _ *election.Leadership) error {
				return u.work(ctx)
			})
		}},
		"keep": {reports: true, use: func(ctx context.Context, n *mortise.Node, u *user, report func(error)) error {
			o := keep.Options{Report: func(_ mortise.Token, err error) { report(err) }}
			return keep.Run(ctx, n, mortise.Request{Key: "k"}, o, func(ctx context.Context, _ *mortise.Lock) error {
				return u.work(ctx)
			})
		}},
		"tick": {reports: true, use: func(ctx context.Context, n *mortise.Node, u *user, report func(error)) error {
			return tick.Run(ctx, n, tick.Job{Name: "t", Schedule: tick.Every(time.Minute), Late: 40 * time.Second,
				Run: func(ctx context.Context, _ tick.Tick) error { return u.work(ctx) },
				Report: func(_ tick.Tick, err error) {
					if err != nil {
						report(err)
					}
				}})
		}},
		"shard": {reports: true, use: func(ctx context.Context, n *mortise.Node, u *user, report func(error)) error {
			return shard.Run(ctx, n, shard.Work{Name: "s", Count: 1,
				Run:    func(ctx context.Context, _ shard.Shard) error { return u.work(ctx) },
				Report: func(_ int, err error) { report(err) }})
		}},
		"barrier": {use: func(ctx context.Context, n *mortise.Node, u *user, _ func(error)) error {
			d, err := barrier.NewDouble(n, "b", 1)
			if err != nil {
				return err
			}
			p, err := d.Enter(ctx, "one")
			if err != nil {
				return err
			}
			err = u.work(p.Context(ctx))
			left, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return errors.Join(err, p.Leave(left))
		}},
		"stripe": {use: func(ctx context.Context, n *mortise.Node, u *user, _ func(error)) error {
			set, err := stripe.New(n, "st", 3)
			if err != nil {
				return err
			}
			_, lock, err := set.Any(ctx)
			if err != nil {
				return err
			}
			err = u.work(lock.Context(ctx))
			return errors.Join(err, lock.Unlock(context.WithoutCancel(ctx)))
		}},
		"flight": {use: func(ctx context.Context, n *mortise.Node, u *user, _ func(error)) error {
			g := flight.New[int](n)
			defer g.Close()
			_, err := g.Do(ctx, "f", func(context.Context) (int, bool, error) { return 0, false, nil },
				func(ctx context.Context, _ mortise.Token) (int, error) { return 0, u.work(ctx) })
			return err
		}},
		"presence": {use: func(ctx context.Context, n *mortise.Node, u *user, _ func(error)) error {
			return presence.Run(ctx, n, "p", "here")
		}},
	}
}

// noRooms are the other public packages, and why they have no row.
var noRooms = map[string]string{
	"counter": "it has no lock; each addition says whether it took effect", "fence": "it has no lock of its own",
	"keys": "names of keys", "locker": "an interface", "console": "it only shows", "mortisetest": "for tests",
	"cluster": "not on top of a lock", "lockfsm": "not on top of a lock", "raftlog": "not on top of a lock",
	"session": "not on top of a lock", "transport": "not on top of a lock", "bench": "measures", "judge": "judges",
}

// TestEachPackageOnALockHasARow fails for a new package.
func TestEachPackageOnALockHasARow(t *testing.T) {
	docs, err := filepath.Glob("../*/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(docs, keys) {
		name := filepath.Base(filepath.Dir(file))
		if strings.HasSuffix(file, "_test.go") || noRooms[name] != "" {
			continue
		}
		if _, has := rooms()[name]; !has {
			t.Errorf("package %s has no row in rooms, and no reason in noRooms", name)
		}
	}
	for name := range noRooms {
		if _, err := os.Stat(filepath.Join("..", name)); err != nil {
			t.Error(err)
		}
	}
}

// eachRoom runs a test for each package, with three nodes in fake time.
func eachRoom(t *testing.T, test func(t *testing.T, c *mortisetest.Cluster, r room)) {
	for name, r := range rooms() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, mortisetest.New(t, 3), r) })
		})
	}
}

// used is a package in use.
type used struct {
	user
	node    *mortise.Node
	reports chan error
	end     context.CancelFunc
	ended   chan error
}

func (r room) start(t *testing.T, n *mortise.Node) *used {
	ctx, cancel := context.WithCancel(t.Context())
	u := &used{user: user{make(chan struct{}, 100), make(chan error, 1)}, node: n, reports: make(chan error, 100),
		end: cancel, ended: make(chan error, 1)}
	go func() { u.ended <- r.use(ctx, n, &u.user, func(err error) { u.reports <- err }) }()
	return u
}

// has waits until the package has its lock.
func (u *used) has(t *testing.T, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); u.node.Status().Held == 0; time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-u.ended:
			t.Fatalf("it has ended without its lock: %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("it has no lock after %v", within)
		}
	}
}

// givesBack ends the use, and checks that nothing is held.
func (u *used) givesBack(t *testing.T, c *mortisetest.Cluster) {
	t.Helper()
	u.end()
	select {
	case <-u.ended:
	case <-time.After(time.Minute):
		t.Fatal("it has not ended a minute after its context")
	}
	c.Ready()
	if held := u.node.Status().Held; held != 0 {
		t.Errorf("%d locks are held after the end", held)
	}
	c.Until("the group has no holder and no waiter", func() bool {
		for info, err := range c.Node(1).List(t.Context(), "") {
			if err != nil || info.Held+info.Waiting > 0 {
				return false
			}
		}
		return true
	})
}

// TestEachLossIsReported checks that the user of each package hears of the loss of its lock, with
// the reason, and that a package that goes on has a lock again.
func TestEachLossIsReported(t *testing.T) {
	eachRoom(t, func(t *testing.T, c *mortisetest.Cluster, r room) {
		u := r.start(t, c.Node(0))
		u.has(t, 2*time.Minute)
		c.Lose(0)
		synctest.Wait()
		if len(u.begun) > 0 {
			if err := <-u.told; !errors.Is(err, mortise.ErrLost) {
				t.Errorf("the context of the work ended by %v", err)
			}
		}
		time.Sleep(time.Second)
		if r.reports {
			select {
			case err := <-u.reports:
				if !errors.Is(err, mortise.ErrLost) {
					t.Errorf("reported: %v", err)
				}
			default:
				t.Error("the loss is not reported")
			}
		}
		select {
		case err := <-u.ended:
			if !errors.Is(err, mortise.ErrLost) {
				t.Errorf("it has ended by %v", err)
			}
			u.ended <- err
		default:
			u.has(t, 3*time.Minute)
		}
		u.givesBack(t, c)
	})
}

// TestEachPackageWaitsForTheGroup begins each use while its node has no leader.
func TestEachPackageWaitsForTheGroup(t *testing.T) {
	slow.UnderRace(t)
	eachRoom(t, func(t *testing.T, c *mortisetest.Cluster, r room) {
		c.Isolate(0)
		time.Sleep(30 * time.Second)
		u := r.start(t, c.Node(0))
		time.Sleep(10 * time.Second)
		c.Heal()
		u.has(t, 3*time.Minute)
		u.givesBack(t, c)
	})
}
