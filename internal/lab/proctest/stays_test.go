//go:build linux

package proctest

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/history"
)

const (
	defaultTTL = 10 * time.Second
	keptKeys   = 10 // number of sticky locks in the tests of this file
	refusedFor = 2 * time.Second
)

// waits compares how long callers waited for a sticky lock with the goal: a TTL, for which a lost
// instance keeps the lock, and a failover. It leaves out instances that may lose their locks.
func (w *world) waits(events []history.Event) {
	w.t.Helper()
	called := map[int]map[uint64]int64{} // by stream and by call
	for i, in := range w.lives {
		if !w.mayLose[in] {
			called[i+1] = map[uint64]int64{}
		}
	}
	longest := time.Duration(0)
	for _, e := range events {
		switch in := w.lives[e.Stream-1]; {
		case called[e.Stream] == nil || !in.wasReady(e.At):
		case e.Kind == history.Call && strings.HasPrefix(e.Key, "kept/"):
			called[e.Stream][e.Op] = e.At
		case e.Kind == history.Return:
			if at, is := called[e.Stream][e.Op]; is {
				longest = max(longest, time.Duration(e.At-at))
			}
		}
	}
	goal := cmp.Or(w.ttl, defaultTTL) + failover
	w.t.Logf("the longest wait for a sticky lock: %v (goal %v)", longest.Round(time.Millisecond), goal)
	if longest > slack*goal {
		w.t.Errorf("a caller waited %v for a sticky lock, more than %d times the goal of %v", longest, slack, goal)
	}
}

// loss is a way in which an instance loses the sticky locks that it keeps.
type loss struct {
	name  string
	in    scope
	leads bool // the instance is the leader
	inUse bool // callers of the instance hold the locks
	begin func(w *world, holder *instance, rest []*instance)
	end   func(w *world, holder *instance) // nil if begin has killed the process
	ttls  time.Duration                    // the number of TTLs after which the other instances get the locks
}

var losses = [...]loss{
	{"killed/leader", whole, true, false, killed, nil, 1},
	{"killed/follower", always, false, false, killed, nil, 1},
	{"stopped/leader", whole, true, false, stopped, continued, 1},
	{"stopped/follower", whole, false, false, stopped, continued, 1},
	{"stopped in use/leader", always, true, true, stopped, continued, 1},
	{"stopped in use/follower", whole, false, true, stopped, continued, 1},
	// The renewals of an instance that receives nothing may reach the leader until its lease ends.
	{"deaf/follower", whole, false, true, deafened, healed, 2},
}

func killed(w *world, holder *instance, _ []*instance) { w.kill(holder) }

// stopped waits until all threads have stopped. Until then the instance could give the locks back.
func stopped(w *world, holder *instance, _ []*instance) {
	holder.signal(syscall.SIGSTOP)
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Waitid(unix.P_PID, holder.cmd.Process.Pid, nil, unix.WSTOPPED, nil)
	}
	if err != nil {
		w.t.Fatalf("wait for the stop of %s: %v", holder.life, err)
	}
}

func continued(_ *world, holder *instance) { holder.signal(syscall.SIGCONT) }

func deafened(w *world, holder *instance, rest []*instance) {
	for _, in := range rest {
		w.net.cutOneWay(in.machine, holder.machine)
	}
}

func healed(w *world, _ *instance) { w.net.heal() }

// In TestStays an instance that keeps sticky locks is lost. The other instances must get the locks
// when its lease ends. A lost instance that returns must have lost its locks.
func TestStays(t *testing.T) {
	for _, l := range losses {
		t.Run(l.name, func(t *testing.T) {
			begin(t, l.in)
			w := newWorld(t, settings{replicas: 3, ttl: 3 * time.Second, unused: time.Hour})
			fleet := w.startAll(3)
			w.waitReady(slack*readyTime, fleet...)
			holder, goal := w.leader(fleet...), l.ttls*w.ttl
			if l.leads {
				goal += failover
			} else {
				holder = without(fleet, holder)[0]
			}
			rest := without(fleet, holder)
			w.lose(holder)
			kept := w.keep(l.inUse, holder)
			l.begin(w, holder, rest)
			taken := w.takeKept(rest, kept, goal)
			if l.end == nil {
				holder = w.start(holder.name, holder.machine)
				w.waitReady(slack*readyTime, holder)
			} else {
				w.comeBack(holder, l)
			}
			for i := range keptKeys {
				w.request(rest[i%len(rest)], "unlock", keptKey(i))
				if now := w.request(holder, "keep", keptKey(i)); now <= taken[i] {
					t.Errorf("%s: token %d after token %d", keptKey(i), now, taken[i])
				}
				w.request(holder, "unlock", keptKey(i))
			}
			w.verdict(slack * readyTime)
		})
	}
}

func keptKey(i int) string { return fmt.Sprintf("stays/%d", i) }

// request makes an instance lock or unlock a key, and returns the token.
func (w *world) request(in *instance, op, key string) uint64 {
	w.t.Helper()
	e, err := in.ask(op, key, slack*readyTime)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return e.Token
}

// keep makes an instance keep the sticky locks of the test, in use or free. It returns the last
// tokens.
func (w *world) keep(inUse bool, holder *instance) (tokens [keptKeys]uint64) {
	w.t.Helper()
	for i := range tokens {
		w.request(holder, "keep", keptKey(i))
		w.request(holder, "unlock", keptKey(i))
		tokens[i] = w.request(holder, "keep", keptKey(i))
		if !inUse {
			w.request(holder, "unlock", keptKey(i))
		}
	}
	return tokens
}

// takeKept makes other instances lock the keys that a lost instance has kept. It checks that the
// locks were kept, that they are granted within the goal, and that the tokens rise.
func (w *world) takeKept(by []*instance, kept [keptKeys]uint64, goal time.Duration) (tokens [keptKeys]uint64) {
	w.t.Helper()
	began := time.Now()
	var took [keptKeys]time.Duration
	var all sync.WaitGroup
	for i := range keptKeys {
		all.Go(func() {
			e, err := by[i%len(by)].ask("keep", keptKey(i), slack*goal)
			if took[i], tokens[i] = time.Since(began), e.Token; err != nil {
				w.t.Errorf("not granted within %d times %v: %v", slack, goal, err)
			} else if e.Token <= kept[i] {
				w.t.Errorf("%s: token %d after token %d", keptKey(i), e.Token, kept[i])
			}
		})
	}
	all.Wait()
	least, most := took[0], took[0]
	for _, t := range took {
		least, most = min(least, t), max(most, t)
	}
	w.t.Logf("the kept locks were granted to others after %v to %v (goal %v)", least.Round(time.Millisecond),
		most.Round(time.Millisecond), goal)
	if least < w.ttl/3 { // the lease was renewed less than that long ago
		w.t.Errorf("a lock was granted after %v, so it was not kept", least)
	}
	return tokens
}

// comeBack ends the loss of an instance. The first calls of the instance must show that it has lost
// its locks. They are sent before the loss ends.
func (w *world) comeBack(holder *instance, l loss) {
	w.t.Helper()
	var checks, calls [keptKeys]func() (event, error)
	for i := range keptKeys {
		if l.inUse {
			checks[i] = holder.send("check", keptKey(i), refusedFor)
		}
		calls[i] = holder.send("keep", keptKey(i), refusedFor)
	}
	time.Sleep(2 * clocks) // the judge must be able to see a pass that is granted too late
	l.end(w, holder)
	for i := range keptKeys {
		if e, err := calls[i](); err == nil {
			w.t.Errorf("%s was granted to %s with token %d, and another instance holds it", keptKey(i), holder.life, e.Token)
		}
		if !l.inUse {
			continue
		}
		if e, err := checks[i](); !strings.Contains(e.Err, mortise.ErrLost.Error()) {
			w.t.Errorf("%s returned with the lock %s: %v", holder.life, keptKey(i), err)
		}
	}
}
