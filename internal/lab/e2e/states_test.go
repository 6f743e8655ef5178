package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestBigStates measures how long large states delay requests for locks. It takes minutes. The
// command scripts/states runs it and writes the output to bench/states.md.
func TestBigStates(t *testing.T) {
	wanted := os.Getenv("MORTISE_STATES")
	if wanted == "" {
		t.Skip("scripts/states runs it")
	}
	for _, row := range []struct{ locks, sessions int }{{10_000, 100}, {100_000, 100}, {1_000_000, 100},
		{10_000, 10_000}, {10_000, 100_000}} {
		name := fmt.Sprintf("%d locks, %d sessions", row.locks, row.sessions)
		if !strings.Contains(wanted, "all") &&
			!strings.Contains(wanted, strconv.Itoa(row.locks)+"/"+strconv.Itoa(row.sessions)) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newBigState(t)
			s.usual = s.during(5 * time.Second)
			s.fill(row.locks, row.sessions)
			s.row(row.locks, row.sessions)
		})
		t.Run(name+", on disk", func(t *testing.T) { restart(t, row.locks, row.sessions) })
	}
}

const (
	bigCallers = 64
	bigRuns    = 5
)

// bigState is a group in one process, over loopback TCP: three voters, and an instance without a
// vote that holds all the locks.
type bigState struct {
	t         *testing.T
	addresses []string
	nodes     []*node // three voters, the holder, and later instances
	holder    *node
	holds     []*mortise.Lock
	usual     time.Duration // 99th percentile of Lock with an empty state

	heapLock, heapSession float64
	taking                time.Duration
}

// newBigState starts the nodes. Voter i keeps its state in dirs[i], if dirs is not empty.
func newBigState(t *testing.T, dirs ...string) *bigState {
	s := &bigState{t: t}
	for range 4 + bigRuns {
		// Another process may take the port before the node binds it.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.addresses = append(s.addresses, l.Addr().String())
		_ = l.Close()
	}
	dirs = append(dirs, make([]string, 4)...)
	for i := range 4 {
		s.start(i, dirs[i])
	}
	s.ready(s.nodes...)
	for len(s.voters()) < 3 {
		time.Sleep(time.Millisecond)
	}
	adopted(t, s.leader())
	s.holder = s.nodes[slices.IndexFunc(s.nodes, func(n *node) bool { return !n.Status().Votes })]
	return s
}

func (s *bigState) start(i int, dir string) *node {
	s.t.Helper()
	n, err := start(s.t.Context(), mortise.Config{
		Name: fmt.Sprintf("node-%d", i), Bind: s.addresses[i], Join: s.addresses[:4], Replicas: 4,
		SessionTTL: 10 * time.Minute, Grace: -1, Dir: dir, Logger: slog.New(slog.DiscardHandler),
		// A million locks exceed the defaults.
		MaxSessionBytes: 2 << 30, MaxGroupBytes: 4 << 30,
	}, outside.World{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = n.Close() })
	s.nodes = append(s.nodes, n)
	return n
}

func (s *bigState) ready(nodes ...*node) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for _, n := range nodes {
		if err := n.Ready(ctx); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *bigState) leader() *node {
	for {
		for _, n := range s.nodes {
			if n.Status().Leading {
				return n
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *bigState) fill(locks, sessions int) {
	before := liveHeap()
	s.holds = make([]*mortise.Lock, locks)
	began := time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 1024 {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < locks; i = next.Add(1) - 1 {
				l, err := s.holder.Lock(s.t.Context(), fmt.Sprintf("orders/%09d", i))
				if err != nil {
					s.t.Error(err)
					return
				}
				s.holds[i] = l
			}
		})
	}
	all.Wait()
	s.taking = time.Since(began)
	s.heapLock = float64(liveHeap()-before) / float64(locks)
	before = liveHeap()
	s.open(sessions)
	s.heapSession = float64(liveHeap()-before) / float64(sessions)
}

func (s *bigState) open(sessions int) {
	r := s.leader().Replica()
	record := []byte(`{"instance":"0","name":"one of very many","addr":"10.0.0.1:7946"}`)
	for from := 0; from < sessions; from += 1000 {
		var batch []byte
		for i := from; i < min(sessions, from+1000); i++ {
			var nonce lockfsm.Nonce
			binary.BigEndian.PutUint64(nonce[:], uint64(i+1))
			batch = lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce, TTL: 10 * time.Minute,
				Record: record}.Append(batch)
		}
		r.Log.Propose(r.Role().Term, batch)
		for want := from + min(1000, sessions-from); r.Counts().Sessions < want; {
			time.Sleep(time.Millisecond)
		}
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

type sample struct{ at, took time.Duration }

// load runs callers on the voters, each with its own key, until it is stopped.
type load struct {
	began    time.Time
	stopping atomic.Bool
	all      sync.WaitGroup
	samples  [bigCallers][]sample
}

func (s *bigState) load(nodes ...*node) *load {
	l := &load{began: time.Now()}
	for i := range bigCallers {
		key := fmt.Sprint("load/", i)
		l.all.Go(func() {
			for turn := i; !l.stopping.Load(); turn++ {
				began := time.Now()
				lock, err := nodes[turn%len(nodes)].Lock(s.t.Context(), key)
				if err != nil {
					s.t.Error(err)
					return
				}
				l.samples[i] = append(l.samples[i], sample{time.Since(l.began), time.Since(began)})
				if err := lock.Unlock(s.t.Context()); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	return l
}

func (l *load) stop() {
	l.stopping.Store(true)
	l.all.Wait()
}

type window struct{ from, to time.Duration }

func (l *load) p99(w window) time.Duration {
	var took []time.Duration
	for _, samples := range l.samples {
		for _, x := range samples {
			if x.at >= w.from && x.at-x.took <= w.to {
				took = append(took, x.took)
			}
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

func (s *bigState) voters() (list []*node) {
	for _, n := range s.nodes {
		if n.Status().Votes && n.Err() == nil {
			list = append(list, n)
		}
	}
	return list
}

func (s *bigState) during(d time.Duration) time.Duration {
	l := s.load(s.voters()...)
	time.Sleep(d)
	l.stop()
	return l.p99(window{d / 10, d})
}

func (s *bigState) snapshots(n int) (seen []seen) {
	log := s.leader().Replica().Log
	l := s.load(s.voters()...)
	var windows []window
	for len(windows) < n && time.Since(l.began) < 3*time.Minute {
		if !log.Status().Taking {
			time.Sleep(100 * time.Microsecond)
			continue
		}
		w := window{from: time.Since(l.began)}
		for log.Status().Taking {
			time.Sleep(100 * time.Microsecond)
		}
		w.to = time.Since(l.began)
		windows = append(windows, w)
	}
	l.stop()
	return l.seen(windows...)
}

// newcomers makes a voter leave n times under load, and each time waits for its replacement.
func (s *bigState) newcomers(n int) (seen []seen) {
	for i := range n {
		s.ready(s.start(4+i, ""))
		var stay []*node
		var leaver *node
		for _, v := range s.voters() {
			if leaver == nil && v != s.leader() && v != s.holder {
				leaver = v
				continue
			}
			stay = append(stay, v)
		}
		l := s.load(stay...)
		time.Sleep(time.Second)
		w := window{from: time.Since(l.began)}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		if err := leaver.Leave(ctx); err != nil {
			s.t.Error(err)
		}
		cancel()
		s.nodes = slices.DeleteFunc(s.nodes, func(x *node) bool { return x == leaver })
		for len(s.voters()) < 3 {
			time.Sleep(time.Millisecond)
		}
		w.to = time.Since(l.began)
		l.stop()
		seen = append(seen, l.seen(w)...)
	}
	return seen
}

// seen is the duration of an event, and the 99th percentile of the durations of calls during the
// event.
type seen struct{ took, p99 time.Duration }

func (l *load) seen(windows ...window) (list []seen) {
	for _, w := range windows {
		list = append(list, seen{w.to - w.from, l.p99(w)})
	}
	return list
}

// row measures the delays of requests for locks, and prints a line of the first table.
func (s *bigState) row(locks, sessions int) {
	resting := s.during(5 * time.Second)
	taken, joined := s.snapshots(bigRuns), s.newcomers(bigRuns)
	state := s.leader().Replica().Log.Status().StateBytes
	session := "" // a hundred sessions are too few to measure
	if sessions >= 10_000 {
		session = fmt.Sprintf("%.0f B", s.heapSession)
	}
	fmt.Printf("STATES | %s | %s | %v | %.0f B | %s | %.1f MB | %v | %v | %s | %s |\n",
		number(locks), number(sessions), s.taking.Round(10*time.Millisecond), s.heapLock, session, float64(state)/1e6,
		short(s.usual), short(resting), beside(resting, taken), beside(resting, joined))
}

// beside returns a text with two medians: how long the events took, and the ratio of the 99th
// percentile during the event to the usual 99th percentile.
func beside(usual time.Duration, list []seen) string {
	if len(list) == 0 {
		return "none"
	}
	var took, p99 []time.Duration
	for _, s := range list {
		took, p99 = append(took, s.took), append(p99, s.p99)
	}
	return fmt.Sprintf("%v, %v (×%.1f)", short(middle(took)), short(middle(p99)), float64(middle(p99))/float64(usual))
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func short(d time.Duration) time.Duration {
	if d > 100*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// restart measures how soon a voter with a directory votes again after a restart, and how soon the
// other voters grant locks after the crash of their leader.
func restart(t *testing.T, locks, sessions int) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	s := newBigState(t, dirs...)
	s.fill(locks, sessions)
	resting := s.during(5 * time.Second)
	taken := s.snapshots(bigRuns)
	i := slices.IndexFunc(s.nodes, func(n *node) bool { return n != s.leader() && n != s.holder })
	if err := s.nodes[i].Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	again := s.start(i, dirs[i])
	s.nodes = slices.Delete(s.nodes, i, i+1)
	s.ready(again)
	ready := time.Since(began)
	for r := again.Replica(); r == nil || r.Counts().Locks < locks; r = again.Replica() {
		time.Sleep(time.Millisecond)
	}
	back := time.Since(began)
	l := s.load(s.others(s.leader())...)
	time.Sleep(time.Second)
	w := window{from: time.Since(l.began)}
	if err := s.leader().Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	w.to = time.Since(l.began)
	l.stop()
	fmt.Printf("STATES-DISK | %s | %s | %v | %s | %v | %v | %v |\n", number(locks), number(sessions), short(resting),
		beside(resting, taken),
		short(ready), short(back), short(l.gap(w)))
}

func (s *bigState) others(but *node) []*node {
	return slices.DeleteFunc(s.voters(), func(n *node) bool { return n == but })
}

func (l *load) gap(w window) (longest time.Duration) {
	var at []time.Duration
	for _, samples := range l.samples {
		for _, x := range samples {
			if x.at >= w.from && x.at <= w.to {
				at = append(at, x.at)
			}
		}
	}
	slices.Sort(at)
	for i, x := range at[min(1, len(at)):] {
		longest = max(longest, x-at[i])
	}
	return longest
}
