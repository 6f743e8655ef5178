package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// rolloutsEnv is the number of rolling updates, if it is not the usual one.
const rolloutsEnv = "MORTISE_ROLLOUTS"

// rolloutPause limits the 99th percentile of the times without a grant of a free lock, one for each
// instance that is replaced.
const rolloutPause = 50 * time.Millisecond

// rollout is a fleet of three in memory that is updated again and again.
type rollout struct {
	*fleet
	rng    *rand.Rand
	build  int64
	pauses []time.Duration

	mu    sync.Mutex
	built map[string]int64 // build of the instance that has the name now
	leads map[uint64]int64 // build of the leader of each term
	who   map[uint64]string
}

// TestRollingUpdates updates a group of three in memory 50 times, in every order in turn. No lock
// that another instance holds is lost, the lead moves at most twice, once if the leader is the last
// one, and never to an older build.
func TestRollingUpdates(t *testing.T) {
	slow.UnderRace(t)
	many := 50
	if testing.Short() {
		many = 12 // each order twice
	}
	if n, err := strconv.Atoi(os.Getenv(rolloutsEnv)); err == nil {
		many = n
	}
	// Places of the leader of before, and of its followers, in the order of the update.
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}}
	bubble(t, func(t *testing.T) {
		r := &rollout{rng: rand.New(rand.NewPCG(1, 2)), built: map[string]int64{}, leads: map[uint64]int64{},
			who: map[uint64]string{}}
		r.fleet = newFleet(t)
		r.alter = func(w *outside.World) { w.Build = 1 + r.build }
		r.net.SetLatency(500 * time.Microsecond)
		for i := range 3 {
			r.launch(i)
		}
		r.ready()
		for n := range many {
			r.build++
			r.update(n, orders[n%len(orders)])
		}
		slices.Sort(r.pauses)
		at := func(percent int) time.Duration { return r.pauses[(len(r.pauses)-1)*percent/100] }
		t.Logf("%d updates: the pauses of grants have the median %v, p99 %v, and the longest is %v", many, at(50),
			at(99), at(100))
		if at(99) > rolloutPause {
			t.Errorf("p99 of the pauses is %v, more than %v", at(99), rolloutPause)
		}
	})
}

func (r *rollout) launch(i int) {
	c := r.config(i, 3)
	c.Hooks = &mortise.Hooks{Node: r.note}
	r.mu.Lock()
	r.built[c.Name] = r.build
	r.mu.Unlock()
	r.start(i, c)
}

func (r *rollout) note(e mortise.NodeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Leader != "" && e.Term != 0 && r.who[e.Term] == "" {
		r.who[e.Term], r.leads[e.Term] = e.Leader, r.built[e.Leader]
	}
}

// update replaces the instances one after the other. A new one must be ready first.
func (r *rollout) update(n int, order []int) {
	r.t.Helper()
	was := r.leader()
	term := r.nodes[was].Status().Term
	for _, place := range order {
		i := (was + place) % 3
		pause := r.replace(i)
		r.pauses = append(r.pauses, pause)
	}
	last := r.nodes[r.leader()].config.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	var path []string
	build, name, moves, allowed := r.build-1, r.nodes[was].config.Name, 0, 2
	if order[2] == 0 {
		allowed = 1
	}
	for _, next := range slices.Sorted(maps.Keys(r.who)) {
		if next <= term {
			continue
		}
		path = append(path, fmt.Sprint(r.who[next], " of build ", r.leads[next]))
		if r.who[next] != name || r.leads[next] != build {
			moves++
		}
		if r.leads[next] < build {
			r.t.Errorf("update %d in the order %v moves the lead back to an older build: %v", n, order, path)
		}
		name, build = r.who[next], r.leads[next]
	}
	if moves > allowed || build != r.build || name != last {
		r.t.Errorf("update %d in the order %v moves the lead %d times, at most %d are needed: %v", n, order, moves,
			allowed, path)
	}
}

// replace stops an instance and starts its next build. It returns the longest time without a grant.
func (r *rollout) replace(i int) time.Duration {
	r.t.Helper()
	held := map[int]*mortise.Lock{}
	for j := range 3 {
		if j != i {
			held[j] = r.lock(j, fmt.Sprint("own/", j))
		}
	}
	p := r.probe((i+1)%3, 10*time.Millisecond)
	time.Sleep(time.Duration(r.rng.IntN(50)) * time.Millisecond)
	leaver := r.nodes[i]
	r.nodes[i] = nil
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	if err := leaver.Leave(ctx); err != nil {
		r.t.Errorf("%s leaves: %v", leaver.config.Name, err)
	}
	time.Sleep(time.Duration(r.rng.IntN(200)) * time.Millisecond)
	r.launch(i)
	r.ready()
	gap := p.gap()
	for j, l := range held {
		if err := l.Err(); err != nil {
			r.t.Errorf("node %d lost its lock when node %d was replaced: %v", j, i, err)
		}
		unlock(r.t, l)
	}
	return gap
}
