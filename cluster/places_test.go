package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func (f *fleet) names(name string, ips ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dns[name] = ips
}

// newborns fails if any instance belongs to a group. It returns the Status.Waiting of the first
// instance.
func (f *fleet) newborns() string {
	f.t.Helper()
	for _, n := range f.nodes {
		if s := n.Status(); s.Phase != Newborn {
			f.t.Fatalf("%s is %v of group %x", n.cfg.Name, s.Phase, s.Group)
		}
	}
	return f.nodes[0].Status().Waiting
}

// write replaces a file atomically.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func wantText(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("it says %q, which does not say %q", got, part)
		}
	}
}

func TestEveryFormOfJoinLeadsToTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers")
	write(t, path, "# all\n10.0.0.1:7947\nsecond.example:7947\n10.0.0.3:7947\n10.0.0.4:7947")
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.names("all.example", "10.0.0.4", "10.0.0.2", "10.0.0.1", "10.0.0.3", "::ffff:10.0.0.1")
		f.names("second.example", "10.0.0.2")
		f.names("third.example", "10.0.0.3")
		for i := range 4 {
			cfg := f.config(i, 4)
			switch i {
			case 0:
				cfg.Join = []string{"dns:///all.example:7947"}
			case 1:
				cfg.Join = []string{"srv:///_lock._tcp.example"}
				cfg.Services = func(_ context.Context, name string) ([]string, error) {
					if name != "_lock._tcp.example" {
						return nil, errors.New("asked for " + name)
					}
					return []string{"10.0.0.1:7947", "second.example:7947", "third.example:7947", "10.0.0.4:7947"}, nil
				}
			case 2:
				cfg.Join = []string{"file://" + path}
			case 3:
				cfg.Join = nil
				cfg.JoinFunc = func(context.Context) ([]string, error) { return []string{"all.example:7947"}, nil }
			}
			f.start(cfg)
		}
		f.raft(3 * time.Second)
		f.oneGroup()
		for _, n := range f.nodes {
			var join []founding.Entry
			n.in.post(func() { join = n.own.join.Entries() })
			synctest.Wait()
			if got := fmt.Sprint(join[0].Addrs); got != fmt.Sprint(joinOf(4)) {
				t.Errorf("%s leads to %s", join[0].Name, got)
			}
		}
	})
}

// slowest is the longest pause between two lookups of an entry while there is a leader. It
// includes the random part.
const slowest = 12500 * time.Millisecond

// TestInstanceAtANewAddressIsFoundBehindItsName checks that the others find an instance that does
// not find any of them.
func TestInstanceAtANewAddressIsFoundBehindItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.names("all.example", "10.0.0.1", "10.0.0.2", "10.0.0.3")
		f.names("self.example", "10.0.0.43")
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Join = []string{"dns:///all.example:7947"}
			f.start(cfg)
		}
		f.raft(20 * time.Second)
		f.oneGroup()
		for _, n := range f.nodes {
			n.in.post(func() { n.own.core.find.next = n.now() + time.Hour }) // no search for lost peers
		}
		f.nodes[2].stop()
		f.raft(time.Second)
		cfg := f.config(2, 3)
		cfg.Join, cfg.Advertise = []string{"dns:///self.example:7947"}, addrOf(42)
		again := f.start(cfg)
		f.names("all.example", "10.0.0.1", "10.0.0.2", "10.0.0.43")
		f.raft(slowest + time.Second)
		if s := again.Status(); s.Phase != PhaseMember {
			t.Errorf("after %v it is %v and waits for %q", slowest+time.Second, s.Phase, s.Waiting)
		}
		f.oneGroup()
	})
}

func TestLosingTheLeaderMakesLookupsFastAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		var asked atomic.Int64
		cfg := f.config(0, 1)
		cfg.Settings.Founders, cfg.Settings.Replicas = []string{"n0"}, 0
		cfg.Join = []string{"dns:///all.example:7947"}
		cfg.Resolve = func(context.Context, string) ([]string, error) { asked.Add(1); return []string{"10.0.0.1"}, nil }
		n := f.start(cfg)
		f.raft(time.Minute)
		f.oneGroup()
		before := asked.Load()
		f.raft(time.Minute)
		if n := asked.Load() - before; n < 4 || n > 6 {
			t.Errorf("%d lookups in a minute with a leader, want about one every ten seconds", n)
		}
		n.HasLeader(false)
		synctest.Wait()
		before = asked.Load()
		time.Sleep(3 * 5 * time.Second / 4)
		if asked.Load()-before < 2 {
			t.Errorf("%d lookups in the three seconds after the leader was lost", asked.Load()-before)
		}
	})
}

func TestANameThatLeadsNowhereFoundsNothingAndSaysTheWayOut(t *testing.T) {
	slow.UnderRace(t)
	for _, founders := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			defer f.stop()
			for i := range 3 {
				cfg := f.config(i, 3)
				cfg.Join = []string{fmt.Sprintf("dns:///all-%d.example:7947", i)}
				if founders {
					cfg.Settings.Replicas, cfg.Settings.Founders = 0, []string{"n0", "n1", "n2"}
				}
				f.start(cfg)
			}
			all := func(ips ...string) {
				for i := range 3 {
					f.names(fmt.Sprintf("all-%d.example", i), ips...)
				}
			}
			f.raft(time.Minute) // no pod is ready, so none is listed
			wantText(t, f.newborns(), "dns:///all-0.example:7947 has no addresses yet",
				"publishNotReadyAddresses: true")
			if f.logged("publishNotReadyAddresses") < 3 || f.logged("publishNotReadyAddresses") > 6 {
				t.Errorf("%d log lines about it from three instances", f.logged("publishNotReadyAddresses"))
			}
			for i := range 3 { // Join leads each instance only to itself
				f.names(fmt.Sprintf("all-%d.example", i), fmt.Sprintf("10.0.0.%d", i+1))
			}
			f.raft(time.Minute)
			wantText(t, f.newborns(), "Join leads to no instance but this one", "publishNotReadyAddresses: true")

			f.net.muffle(addrOf(8), true)
			all("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9") // the last address is stale
			f.raft(time.Minute)
			if !founders { // an instance with the setting Founders needs only the founders
				waiting := f.newborns()
				wantText(t, waiting, "no answer from dns:///all-0.example:7947 (10.0.0.9:7947)")
				if strings.Contains(waiting, "publishNotReadyAddresses") {
					t.Errorf("%q: that is not the trouble", waiting)
				}
			}
			all("10.0.0.1", "10.0.0.2", "10.0.0.3")
			f.raft(4 * time.Second)
			f.oneGroup()
		})
	}
}

func TestServicesThatFailOrMissATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		var answer atomic.Value
		answer.Store([]string{"bad address"})
		start := func(i int) {
			cfg := f.config(i, 3)
			cfg.Join = []string{"srv:///_lock._tcp.example"}
			cfg.Services = func(context.Context, string) ([]string, error) { return answer.Load().([]string), nil }
			f.start(cfg)
		}
		start(0)
		start(1)
		f.raft(6 * time.Second)
		wantText(t, f.newborns(), "srv:///_lock._tcp.example, which Join names, cannot be resolved", "address 1")
		f.names("p0", "10.0.0.1")
		f.names("p1", "10.0.0.2")
		answer.Store([]string{"p0:7947", "p1:7947", "p2:7947"})
		f.raft(6 * time.Second)
		wantText(t, f.newborns(), "srv:///_lock._tcp.example lists p2:7947, which has no address yet",
			"publishNotReadyAddresses")
		f.mu.Lock()
		f.slow["p2"] = true
		f.mu.Unlock()
		f.raft(9 * time.Second)
		wantText(t, f.newborns(), "cannot be resolved: p2: ")
		f.mu.Lock()
		f.slow["p2"] = false
		f.mu.Unlock()
		f.names("p2", "10.0.0.3")
		start(2)
		f.raft(5 * time.Second)
		f.oneGroup()
	})
}

func TestAFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers")
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		start := func(i int) {
			cfg := f.config(i, 3)
			cfg.Join = []string{"file://" + path}
			f.start(cfg)
		}
		start(0)
		start(1)
		f.raft(10 * time.Second)
		wantText(t, f.newborns(), "cannot be resolved", path)
		write(t, path, "# none yet\n")
		f.raft(3 * time.Second)
		waiting := f.newborns()
		wantText(t, waiting, "file://"+path+" lists no instance")
		if strings.Contains(waiting, "publishNotReadyAddresses") {
			t.Errorf("%q: a file is no Service", waiting)
		}
		write(t, path, "10.0.0.1:7947\n10.0.0.2:7947\n10.0.0.3:79")
		f.raft(3 * time.Second)
		f.newborns()
		write(t, path, "10.0.0.1:7947\n10.0.0.2\n")
		f.raft(3 * time.Second)
		wantText(t, f.newborns(), "line 2", `"10.0.0.2" is not host:port`)
		write(t, path, "10.0.0.1:7947\n10.0.0.2:7947\n10.0.0.3:7947\n")
		f.raft(3 * time.Second)
		f.newborns()
		start(2)
		f.raft(3 * time.Second)
		f.oneGroup()
	})
}

func TestAFunctionMayDoWhatItLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		release := make(chan struct{})
		var mode atomic.Value
		mode.Store("panic")
		var calls, inside atomic.Int64
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Join = nil
			var mine atomic.Int64
			cfg.JoinFunc = func(ctx context.Context) ([]string, error) {
				calls.Add(1)
				if mine.Add(1) > 1 {
					inside.Add(1)
				}
				defer mine.Add(-1)
				switch mode.Load() {
				case "panic":
					panic("boom\nboom")
				case "exit":
					runtime.Goexit()
				case "error":
					return joinOf(3), errors.New("the API is down")
				case "slow":
					<-ctx.Done()
					return nil, ctx.Err()
				case "deaf":
					<-release
				case "garbage":
					return []string{addrOf(0), "x"}, nil
				case "none":
					return nil, nil
				}
				return joinOf(3), nil
			}
			f.start(cfg)
		}
		for _, c := range []struct{ mode, want string }{
			{"panic", "it panicked: boom boom"}, {"exit", "it has ended its goroutine"}, {"error", "the API is down"},
			{"garbage", "address 2"},
			{"slow", "deadline exceeded"}, {"none", "Config.JoinFunc returns no instance"},
			{"deaf", "it has not returned"},
		} {
			mode.Store(c.mode)
			f.raft(10 * time.Second)
			wantText(t, f.newborns(), "Config.JoinFunc", c.want)
		}
		if n := f.logged("boom"); n < 3 || n > 9 || f.logged("TestAFunctionMayDoWhatItLikes") == 0 {
			t.Errorf("%d lines about the panic, or none with its stack", n)
		}
		if inside.Load() > 0 {
			t.Error("it was called twice at a time")
		}
		before := calls.Load()
		f.raft(time.Minute)
		if calls.Load() != before {
			t.Error("it was called anew though it has not returned")
		}
		began := time.Now()
		f.nodes[2].Close() // during a partition
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("Close took %v", d)
		}
		f.nodes[2].stop()
		mode.Store("well")
		close(release)
		cfg := f.config(2, 3)
		f.start(cfg)
		f.raft(5 * time.Second)
		f.oneGroup()
		f.stop()
	})
}
