package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/proof"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// eachProof runs a test with an instance whose start proves the end of its predecessor: by a
// directory, and by a run directory. The change gives it to the instance with index 3.
func eachProof(t *testing.T, test func(t *testing.T, change func(*mortise.Config))) {
	for name, run := range map[string]bool{"a directory": false, "a run directory": true} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			d, err := storage.OpenRun(filepath.Join(root, "a"), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _ = d.Close(); !d.Proves() {
				proof.Skip(t, "the file system of %s proves nothing", root)
			}
			bubble(t, func(t *testing.T) {
				test(t, func(c *mortise.Config) {
					switch path := filepath.Join(root, "d"); {
					case c.Name != "node-3":
					case run:
						c.RunDir = path
					default:
						c.Dir = path
					}
				})
			})
		})
	}
}

// hasEnded reports whether the audit log has the end of a session that a later start has shown.
func (f *fleet) hasEnded(i int) bool {
	f.t.Helper()
	ends, err := f.nodes[i].Audit(brief(f.t))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range ends {
		if strings.Contains(e.Reason, "its node has ended") {
			return true
		}
	}
	return false
}

// TestACutProvesNothing cuts a holder off a thousand times, for up to two and a half TTLs, and
// starts another instance with its directory meanwhile. That start is refused, no session ends by a
// proof, and a short cut costs no lock.
func TestACutProvesNothing(t *testing.T) {
	slow.UnderRace(t)
	rounds := 1000
	if testing.Short() {
		rounds = 30
	}
	eachProof(t, func(t *testing.T, change func(*mortise.Config)) {
		f := startFour(t, change)
		r := rand.New(rand.NewPCG(1, 0))
		for range rounds {
			f.cutHolder(r, change)
		}
		f.worksEverywhere()
	})
}

func (f *fleet) cutHolder(r *rand.Rand, change func(*mortise.Config)) {
	f.t.Helper()
	leader := f.leader()
	ttl, waits := f.config(3, 3).SessionTTL, (leader+1+r.IntN(2))%3
	mine := f.lock(3, "k")
	granted := f.lockLater(waits, "k")
	switch r.IntN(4) {
	case 0:
		f.isolate(3)
	case 1:
		f.net.Cut(host(3), host(leader))
	case 2:
		f.net.CutOneWay(host(3), host(leader))
	case 3:
		f.net.CutOneWay(host(leader), host(3))
	}
	lasts := time.Duration(r.Int64N(int64(ttl * 5 / 2)))
	time.Sleep(lasts)
	c := f.config(3, 3)
	c.Bind = address(9)
	change(&c)
	if n, err := start(f.t.Context(), c, f.world(9)); err == nil {
		f.t.Error("a second start with the directory")
		_ = n.Close()
	} else if !strings.Contains(err.Error(), "is open in another process") {
		f.t.Errorf("a second start with the directory: %v", err)
	}
	f.rejoin(3)
	f.ready()
	switch err := mine.Err(); {
	case err == nil && len(granted) > 0:
		f.t.Error("two hold the lock")
	case err == nil:
		unlock(f.t, mine)
	case lasts < ttl/2:
		f.t.Errorf("a cut of %v has cost a lock: %v", lasts, err)
	}
	unlock(f.t, <-granted)
	if f.hasEnded(waits) {
		f.t.Fatal("a session has ended by a proof")
	}
}

// TestALeaderThatDiesBetweenAClaimAndTheEnd kills the leader when it has applied the claim of a
// start, and has ended no session. The start claims again, and the next leader ends the session of
// its predecessor long before its TTL.
func TestALeaderThatDiesBetweenAClaimAndTheEnd(t *testing.T) {
	eachProof(t, func(t *testing.T, change func(*mortise.Config)) {
		f := newFleet(t)
		var victim atomic.Int64 // the leader, from when the claim is awaited
		victim.Store(-1)
		var once sync.Once
		claimed, crashed := make(chan struct{}), make(chan struct{})
		starts := int64(0)
		f.alter = func(w *outside.World) {
			i := starts
			starts++
			w.Alter = func(batch []byte) []byte {
				if victim.Load() == i && claims(batch) {
					once.Do(func() { close(claimed) })
					<-crashed
				}
				return batch
			}
		}
		config := func(i int) mortise.Config {
			c := f.config(i, 3)
			c.SessionTTL = time.Minute
			change(&c)
			return c
		}
		for i := range 4 { // the voters start before node 3
			f.start(i, config(i))
			if i >= 2 {
				f.ready()
			}
		}
		leader := f.leader()
		mine, granted := f.lock(3, "k"), f.lockLater((leader+1)%3, "k")
		f.crash(3)
		victim.Store(int64(leader))
		began := time.Now()
		f.start(3, config(3))
		<-claimed
		f.net.Crash(host(leader))
		close(crashed)
		f.close(leader)
		next := <-granted
		took := time.Since(began)
		t.Logf("granted %v after the start", took)
		if took > 2*failoverLimit || next.Token() <= mine.Token() || !f.hasEnded((leader+1)%3) {
			t.Errorf("granted after %v, with token %d after %d", took, next.Token(), mine.Token())
		}
		unlock(t, next)
	})
}

// claims reports whether a batch has an Attach that claims that an earlier start has ended.
func claims(batch []byte) bool {
	for len(batch) > 0 {
		one, rest, err := lockfsm.Next(batch)
		if err != nil {
			return false
		}
		c, err := lockfsm.Decode(one)
		if err == nil && c.Kind == lockfsm.Attach && (c.Since != 0 || len(c.Former) > 0) {
			return true
		}
		batch = rest
	}
	return false
}

// TestACopyOfADirectoryProvesNothing starts nodes with a copy of a holder's directory, as that of a
// copied disk, while the holder runs. The copy counts its starts on from the same number, but they
// prove nothing about the holder, also if the two are cut from each other and none refuses.
func TestACopyOfADirectoryProvesNothing(t *testing.T) {
	slow.UnderRace(t)
	for name, apart := range map[string]bool{"the two meet": false, "the two are cut from each other": true} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			bubble(t, func(t *testing.T) { startsOfACopy(t, root, apart) })
		})
	}
}

func startsOfACopy(t *testing.T, root string, apart bool) {
	in := func(name string) func(*mortise.Config) {
		return func(c *mortise.Config) {
			if c.Name == "node-3" {
				c.Dir = filepath.Join(root, name)
			}
		}
	}
	f := startFour(t, in("original"))
	f.close(3)
	if err := os.CopyFS(filepath.Join(root, "copy"), os.DirFS(filepath.Join(root, "original"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "copy", "origin")); err != nil { // a copied disk is not recognized
		t.Fatal(err)
	}
	c := f.config(3, 3)
	in("original")(&c)
	f.start(3, c)
	f.ready()
	waits := (f.leader() + 1) % 3
	mine, granted := f.lock(3, "k"), f.lockLater(waits, "k")
	if apart {
		f.net.Cut(host(3), host(9))
	}
	ready := 0
	for range 4 {
		c := f.config(3, 3)
		c.Bind = address(9)
		in("copy")(&c)
		n, err := start(t.Context(), c, f.world(9))
		if err != nil {
			continue // it knows from its last start that it is a copy
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if n.Ready(ctx) == nil {
			ready++
		}
		cancel()
		if mine.Err() == nil && len(granted) > 0 {
			t.Error("two hold the lock")
		}
		f.net.Crash(host(9))
		_ = n.Close()
	}
	if apart != (ready > 0) || f.hasEnded(waits) {
		t.Errorf("%d starts with the copy were ready; a session has ended by a proof: %t", ready, f.hasEnded(waits))
	}
	_ = mine.Unlock(brief(t)) // the holder may have refused
	unlock(t, <-granted)
}
