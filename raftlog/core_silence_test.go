package raftlog

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// wide is a group of Cores in fake time, with the times of package internal/replica. Its network
// has streams like those of TCP: a lost packet is sent again after resend, and delays everything
// behind it. A stopped process takes neither messages nor ticks until it continues. It then takes
// the messages first, like a Log.
type wide struct {
	*cluster
	random    *rand.Rand
	now       time.Duration
	due       dues
	order     int
	trip      time.Duration // the round trip
	loss      float64
	free      map[stream]time.Duration // when the last message of a stream arrives
	stopped   map[uint64]time.Duration // until when a process is stopped
	inbox     map[uint64][]*raftpb.Message
	phase     map[uint64]time.Duration // by which the clock of a replica is ahead
	leads     *replica                 // in the highest term
	term      uint64
	elections int
}

type stream struct {
	from, to uint64
	second   bool
}

const resend = 200 * time.Millisecond

type dueItem struct {
	at    time.Duration
	order int
	do    func()
}

type dues []dueItem

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].order < d[j].order
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(dueItem)) }
func (d *dues) Pop() any     { return take((*[]dueItem)(d), len(*d)-1) }

func newWide(t *testing.T, seed uint64, voters, silence int, trip time.Duration, loss float64) *wide {
	w := &wide{random: rand.New(rand.NewPCG(seed, 4)), trip: trip, loss: loss, free: map[stream]time.Duration{},
		stopped: map[uint64]time.Duration{}, inbox: map[uint64][]*raftpb.Message{}, phase: map[uint64]time.Duration{}}
	w.cluster = newCluster(t, seed, voters, func(cfg *CoreConfig) {
		cfg.Tick, cfg.ElectionTicks, cfg.HeartbeatTicks, cfg.SilenceTicks = realTick, 20, 2, silence
		cfg.SnapshotBytes = 1 << 20
	})
	for _, r := range w.replicas {
		w.phase[r.id] = time.Duration(w.random.Int64N(int64(realTick)))
		w.after(0, func() { w.clock(r) })
	}
	return w
}

func (w *wide) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.due, dueItem{w.now + d, w.order, do})
}

// run lets the time pass until end reports true, which it must within an hour and a bit.
func (w *wide) run(end func() bool) {
	for limit := w.now + 65*time.Minute; !end(); {
		if w.now > limit {
			w.t.Fatal("what was waited for has not happened within an hour")
		}
		next := heap.Pop(&w.due).(dueItem)
		w.now = next.at
		next.do()
	}
}

func (w *wide) pass(d time.Duration) {
	end := false
	w.after(d, func() { end = true })
	w.run(func() bool { return end })
}

// clock is the timer of a replica.
func (w *wide) clock(r *replica) {
	if until := w.stopped[r.id]; until > w.now {
		w.after(until-w.now, func() { w.clock(r) })
		return
	}
	w.read(r)
	r.now = clock.Time(1 + w.now + w.phase[r.id])
	r.core.Tick(r.now)
	w.work(r)
	w.after(max(time.Millisecond, r.core.NextTick().Sub(r.now)), func() { w.clock(r) })
}

// read passes the messages that have arrived while the process was stopped to the replica.
func (w *wide) read(r *replica) {
	for _, m := range w.inbox[r.id] {
		r.core.Step(m)
	}
	w.inbox[r.id] = nil
}

// work carries out what a replica has to do, and sends its messages.
func (w *wide) work(r *replica) {
	r.turn()
	for r.save != nil || r.finish() {
		if r.save != nil {
			r.sync()
		}
	}
	if r.leading > w.term {
		w.leads, w.term, w.elections = r, r.leading, w.elections+1
	}
	for _, sent := range []struct {
		second bool
		of     *[]*raftpb.Message
	}{{false, &w.wire}, {true, &w.twice}} {
		for _, m := range *sent.of {
			w.post(stream{m.GetFrom(), m.GetTo(), sent.second}, m)
		}
		*sent.of = nil
	}
}

func (w *wide) post(s stream, m *raftpb.Message) {
	arrives := w.now + w.trip/2 + time.Duration(w.random.Int64N(int64(w.trip)/10))
	for again := resend; w.random.Float64() < w.loss; again *= 2 {
		arrives += again
	}
	arrives = max(arrives, w.free[s])
	w.free[s] = arrives
	w.after(arrives-w.now, func() {
		if w.cut[[2]uint64{s.from, s.to}] {
			return
		}
		r := w.replica(s.to)
		if until := w.stopped[s.to]; until > w.now {
			w.inbox[s.to] = append(w.inbox[s.to], m)
			w.after(until-w.now, func() { w.wake(r) })
			return
		}
		if s.second {
			r.core.StepDuplicate(m)
		} else {
			r.core.Step(m)
		}
		w.work(r)
	})
}

func (w *wide) wake(r *replica) {
	if w.stopped[r.id] <= w.now {
		w.read(r)
		w.work(r)
	}
}

// silences takes the leader away again and again, and returns the times until another replica leads
// and has committed its first entry, in ascending order.
func (w *wide) silences(takeAway func(l *replica) (giveBack func())) (took []time.Duration) {
	w.pass(4 * time.Minute)
	for range 20 {
		w.pass(10*time.Second + time.Duration(w.random.Int64N(int64(time.Second))))
		w.run(func() bool { return w.leads != nil && w.leads.role.Leading })
		l, began := w.leads, w.now
		giveBack := takeAway(l)
		w.run(func() bool { return w.leads != l })
		took = append(took, w.now-began)
		w.pass(3 * time.Second)
		giveBack()
	}
	w.verify()
	slices.Sort(took)
	return took
}

// TestASilentLeaderIsFollowed stops leaders, and cuts them off. If the round trip is below a
// millisecond and no packet is lost, the median until another leads must be below 200 ms. In no
// network may it be longer than by the timeouts of raft alone.
func TestASilentLeaderIsFollowed(t *testing.T) {
	slow.UnderRace(t)
	for how, takeAway := range map[string]func(w *wide) func(l *replica) func(){
		"stopped": func(w *wide) func(l *replica) func() {
			return func(l *replica) func() {
				w.stopped[l.id] = math.MaxInt64
				return func() {
					w.stopped[l.id] = 0
					w.after(0, func() { w.clock(l) })
				}
			}
		},
		"cut off": func(w *wide) func(l *replica) func() {
			return func(l *replica) func() {
				w.isolate(l.id)
				return func() { clear(w.cut) }
			}
		},
	} {
		for _, trip := range []time.Duration{100 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
			5 * time.Millisecond, 50 * time.Millisecond} {
			for _, loss := range []float64{0, 0.01, 0.1} {
				for _, voters := range []int{3, 5} {
					if (testing.Short() || slow.Race) && (trip != time.Millisecond || loss == 0.1 || voters == 5 && loss > 0) {
						continue
					}
					t.Run(fmt.Sprintf("%s, %v, %v lost, %d voters", how, trip, loss, voters), func(t *testing.T) {
						followed(t, voters, trip, loss, takeAway)
					})
				}
			}
		}
	}
}

func followed(t *testing.T, voters int, trip time.Duration, loss float64,
	takeAway func(w *wide) func(l *replica) func()) {
	median := func(silence int) time.Duration {
		w := newWide(t, 1, voters, silence, trip, loss)
		took := w.silences(takeAway(w))
		t.Logf("SilenceTicks %d: median %v, longest %v", silence, took[10], took[19])
		return took[10]
	}
	now, before := median(8), median(0)
	if trip <= time.Millisecond && loss == 0 && now > 200*time.Millisecond {
		t.Errorf("another led after %v", now)
	}
	if now > before+before/5 {
		t.Errorf("another led after %v, and by the timeouts of raft after %v", now, before)
	}
}

// pauses gives every process pauses whose lengths have a heavy tail, for an hour, and returns the
// number of elections.
func pauses(t *testing.T, seed uint64, silence int, shortest time.Duration, alpha float64) int {
	w := newWide(t, seed, 3, silence, 500*time.Microsecond, 0)
	w.pass(2*time.Minute + 5*time.Second)
	for _, r := range w.replicas {
		random := rand.New(rand.NewPCG(seed, r.id)) // so that both runs have the same pauses
		var pause func()
		pause = func() {
			length := time.Duration(float64(shortest) * math.Pow(1-random.Float64(), -1/alpha))
			w.stopped[r.id] = max(w.stopped[r.id], w.now+min(length, time.Minute))
			w.after(time.Duration(random.ExpFloat64()*float64(time.Second)), pause)
		}
		pause()
	}
	began := w.elections
	w.pass(time.Hour)
	w.verify()
	return w.elections - began
}

// TestPausesCauseNoElections compares an hour of pauses with the same hour by the timeouts of raft
// alone. Only the first pause of its length may cost an election, because nothing foretells it.
func TestPausesCauseNoElections(t *testing.T) {
	slow.UnderRace(t)
	seeds := uint64(20)
	if testing.Short() || slow.Race { // the cores have no goroutines
		seeds = 1
	}
	all := []struct {
		shortest time.Duration
		alpha    float64
	}{
		{2 * time.Millisecond, 3}, {5 * time.Millisecond, 2}, {20 * time.Millisecond, 3}, {10 * time.Millisecond, 1.5},
	}
	for _, tc := range all[:slow.Sized(2, len(all))] {
		t.Run(fmt.Sprint(tc.shortest, " ", tc.alpha), func(t *testing.T) {
			now, before := 0, 0
			for seed := range seeds {
				now += pauses(t, seed, 8, tc.shortest, tc.alpha)
				before += pauses(t, seed, 0, tc.shortest, tc.alpha)
			}
			t.Logf("%d hours: %d elections, %d by the timeouts of raft alone", seeds, now, before)
			if now > before+int(seeds)/2+1 {
				t.Errorf("in %d hours there were %d elections, and %d by the timeouts of raft alone", seeds, now, before)
			}
		})
	}
}
