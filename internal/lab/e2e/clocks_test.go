package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// machine has the clocks of one machine: a boot-time clock that can run fast or slow, stop and
// leap, and a wall clock that can be set.
type machine struct {
	mu     sync.Mutex // guards the fields below
	since  time.Time  // the time at which the boot-time clock was last changed
	base   clock.Time // the reading of the boot-time clock at that time
	rate   float64
	offset time.Duration
}

func newMachine() *machine { return &machine{since: time.Now(), base: clock.Time(time.Hour), rate: 1} }

func (m *machine) Now() clock.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now()
}

func (m *machine) now() clock.Time {
	return m.base.Add(time.Duration(float64(time.Since(m.since)) * m.rate))
}

// run makes the boot-time clock leap, and then run at the given rate. The rate 0 stops the clock.
func (m *machine) run(leap time.Duration, rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base, m.since, m.rate = m.now().Add(leap), time.Now(), rate
}

func (m *machine) wall() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.offset)
}

func (m *machine) setWall(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offset = d
}

func startMachines(t *testing.T, change ...func(*mortise.Config)) (*fleet, []*machine) {
	t.Helper()
	f := newFleet(t)
	var all []*machine
	for i := range 3 {
		m := newMachine()
		all = append(all, m)
		f.unjudged = true // the clocks differ
		f.alter = func(e *outside.World) { e.Clock, e.Wall = m, m.wall }
		c := f.config(i, 3)
		c.SessionTTL = 5 * time.Second
		for _, apply := range change {
			apply(&c)
		}
		f.start(i, c)
	}
	f.ready()
	return f, all
}

// suspend stops a machine, cuts off its node i, and calls the given function. Then the machine
// runs again. If counts is true, its boot-time clock jumps ahead by the missed time. The node
// stays cut off.
func (f *fleet) suspend(m *machine, i int, counts bool, during func()) {
	began := time.Now()
	m.run(0, 0)
	f.isolate(i)
	during()
	asleep := time.Since(began)
	if !counts {
		asleep = 0
	}
	m.run(asleep, 1)
}

// TestHolderSleeps suspends a machine that holds a lock. The first call after the machine wakes
// must report the loss.
func TestHolderSleeps(t *testing.T) {
	slow.UnderRace(t)
	for _, counts := range []bool{true, false} {
		t.Run(fmt.Sprint("the clock counts sleep: ", counts), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, machines := startMachines(t)
				leader := f.leader()
				i := (leader + 1) % 3
				mine := f.lock(i, "k")
				granted := f.lockLater((leader+2)%3, "k")
				var next *mortise.Lock
				f.suspend(machines[i], i, counts, func() { next = <-granted })
				if err := mine.Err(); counts && !errors.Is(err, mortise.ErrLost) {
					t.Errorf("another holds the lock, and the first call after waking says: %v", err)
				} else if !counts && err != nil {
					t.Error("a clock that does not count sleep must deceive the holder, or this test sees nothing")
				}
				f.rejoin(i)
				unlock(t, next)
				f.ready()
				unlock(t, f.lock(i, "k"))
				f.nothingLeft()
			})
		})
	}
}

// TestLeaderSleeps suspends the leader's machine. When the leader wakes, it must report its own
// lock as lost, and end no other lock.
func TestLeaderSleeps(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, machines := startMachines(t)
		leader := f.leader()
		own, others := f.lock(leader, "own"), f.lock((leader+1)%3, "others")
		f.suspend(machines[leader], leader, true, func() {
			unlock(t, f.lock((leader+2)%3, "own"))
			time.Sleep(time.Minute)
		})
		wantIs(t, own.Err(), mortise.ErrLost)
		f.rejoin(leader)
		time.Sleep(20 * time.Second)
		if err := others.Err(); err != nil {
			t.Errorf("a leader that slept cost another its lock: %v", err)
		}
		unlock(t, others)
		f.ready()
		unlock(t, f.lock(leader, "own"))
		f.nothingLeft()
	})
}

// TestLeadersClockLeaps lets the leader's clock leap, so that all leases look expired. The leader
// must not end these leases, because renewals may have arrived that it has not read yet.
func TestLeadersClockLeaps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, machines := startMachines(t)
		leader := f.leader()
		dead, alive := (leader+1)%3, (leader+2)%3
		mine := f.lock(alive, "mine")
		f.lock(dead, "dead")
		granted := f.lockLater(alive, "dead")
		for range 5 {
			machines[leader].run(time.Minute, 1)
			time.Sleep(3 * time.Second)
			if err := mine.Err(); err != nil {
				t.Fatalf("a leap of the leader's clock cost a lock: %v", err)
			}
		}
		f.crash(dead)
		crashed := time.Now()
		next := <-granted
		if took := time.Since(crashed); took > 5*time.Second+failoverLimit {
			t.Errorf("who crashed was followed after %v", took)
		}
		unlock(t, next)
		unlock(t, mine)
		f.nothingLeft()
	})
}

// TestClocksDrift holds locks for an hour while the clocks of holder and leader run 1 % apart, and
// cuts the holder off repeatedly. The holder must notice each loss before the next grant. With
// clocks 10 % apart, two callers must hold the lock at some time. Otherwise the test could not
// detect the failure.
func TestClocksDrift(t *testing.T) {
	slow.UnderRace(t)
	for _, apart := range []float64{0.01, 0.1} {
		t.Run(fmt.Sprint(apart), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, machines := startMachines(t)
				leader := f.leader()
				holder, next := (leader+1)%3, (leader+2)%3
				began, overlaps := time.Now(), 0
				for turn := 0; time.Since(began) < anHour() && overlaps == 0; turn++ {
					fast := apart / 2
					if turn%2 == 1 {
						fast = -fast
					}
					machines[leader].run(0, 1+fast)
					machines[holder].run(0, 1-fast)
					mine := f.lock(holder, "k")
					time.Sleep(time.Duration(7+turn%5*11) * time.Second)
					if err := mine.Err(); err != nil {
						t.Fatalf("drift cost a lock: %v", err)
					}
					granted := f.lockLater(next, "k")
					f.isolate(holder)
					l := <-granted
					if mine.Err() == nil {
						overlaps++
					}
					f.rejoin(holder)
					unlock(t, l)
					f.ready()
				}
				if apart <= 0.01 && overlaps > 0 {
					t.Error("two believed that they held the lock")
				} else if apart > 0.01 && overlaps == 0 {
					t.Error("at this drift two must believe, or this test sees nothing")
				}
				f.nothingLeft()
			})
		})
	}
}

// TestWallClockIsSet sets wall clocks forward and back. Leases must not change, and tokens must
// rise.
func TestWallClockIsSet(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, machines := startMachines(t, withSecret(secretA))
		leader := f.leader()
		holder := (leader + 1) % 3
		mine := f.lock(holder, "mine")
		term, last := f.nodes[leader].Status().Term, mortise.Token(0)
		for _, who := range [][]int{{leader}, {holder}, {0, 1, 2}} {
			for _, offset := range []time.Duration{time.Hour, -time.Hour, 0} {
				for _, i := range who {
					machines[i].setWall(offset)
				}
				time.Sleep(3 * time.Second)
				l := f.lock((leader+2)%3, "k")
				if l.Token() <= last {
					t.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				unlock(t, l)
				synctest.Wait()
				if s := f.nodes[holder].Status(); mine.Err() != nil || s.LeaseFor < 2*time.Second ||
					f.nodes[leader].Status().Term != term {
					t.Fatalf("wall clocks of %v set by %v: %v\n%v", who, offset, mine.Err(), s)
				}
			}
		}
		machines[holder].setWall(-time.Hour)
		machines[(leader+2)%3].setWall(-time.Hour)
		f.crash(leader)
		l := f.lock((leader+2)%3, "k")
		if l.Token() <= last {
			t.Errorf("a leader whose wall clock is an hour behind gave token %d after %d", l.Token(), last)
		}
		unlock(t, l)
		unlock(t, mine)
		f.nothingLeft()
	})
}

// TestUnlockIsTheFirstToNotice checks an Unlock that is the first to notice a loss. The history
// must record when the lock was lost. Otherwise the lock would seem to overlap with the next hold
// of its key.
func TestUnlockIsTheFirstToNotice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ear heard
		var recorded bytes.Buffer
		first := true
		f, machines := startMachines(t, func(c *mortise.Config) {
			if c.History, c.Hooks = nil, ear.hooks(); first {
				c.History, c.Hooks = &recorded, nil
			}
			first = false
		})
		for i := range 2 {
			l := f.lock(i, "k")
			machines[i].run(time.Hour, 1)
			wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
			f.ready()
			unlock(t, f.lock(i, "another"))
			f.close(i)
			f.start(i, f.config(i, 3))
			f.ready()
		}
		if got := ear.of("lost", "unlocked"); !slices.Contains(got, "lost lease") ||
			!slices.Contains(got, "unlocked lost") {
			t.Errorf("hooks heard %q", got)
		}
		events, err := history.Read(nil, &recorded)
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.Lost })
		unlocked := slices.IndexFunc(events, func(e history.Event) bool {
			return e.Kind == history.Unlocked &&
				e.Err == "lost"
		})
		if lost < 0 || unlocked < 0 {
			t.Fatalf("the history has no loss (%d), or not the unlock that found it (%d)", lost, unlocked)
		}
		if since := time.Duration(events[unlocked].At - events[lost].Until); since < 59*time.Minute ||
			since > time.Hour {
			t.Errorf("lost %v before the unlock", since)
		}
	})
}
