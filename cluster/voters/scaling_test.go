package voters

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// rollout changes the founders of a world by a rolling update. Each process has a list of founders.
// The group adopts a list if all processes that have a session and are not leaving have the same
// list, and one of the listed founders is among these processes.
type rollout struct {
	*world
	names map[*proc][]string
}

func foundersTo(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("n", i))
	}
	return names
}

// adoptFounders adopts the list of founders that all staying processes have, if they agree.
func (r *rollout) adoptFounders() {
	var common []string
	here := false
	staying := slices.DeleteFunc(slices.Clone(r.procs), func(p *proc) bool {
		return p.leaving > 0 ||
			p.sessionUntil <= r.now
	})
	for i, p := range staying {
		if i > 0 && !slices.Equal(common, r.names[p]) {
			return
		}
		common = r.names[p]
		here = here || slices.Contains(common, p.name)
	}
	if here && r.leader != 0 {
		r.settings.Founders = common
	}
}

func (r *rollout) pass(within time.Duration, what string, holds func() bool) {
	for end := r.now + within; r.fault == "" && !holds(); {
		if r.now > end {
			r.fail("not within %v: %s; %+v", within, what, Explain(r.view()))
		}
		r.adoptFounders()
		r.step()
		if r.chance(0.01) && r.leader != 0 {
			r.elect()
		}
	}
}

func (r *rollout) enter(i, founders int) {
	p := r.start(fmt.Sprint("n", i), "a")
	r.names[p] = foundersTo(founders)
	r.pass(20*time.Second, p.name+" is registered", func() bool { return p.leaving > 0 || p.sessionUntil > r.now })
}

// A call of goes makes a process leave. It fails if the process may not stop within the time
// limit of Leave.
func (r *rollout) goes(i int) {
	at := slices.IndexFunc(r.procs, func(p *proc) bool { return p.alive && p.name == fmt.Sprint("n", i) })
	p := r.procs[at]
	r.note("%s leaves", p.name)
	p.leaving = r.now
	r.pass(10*time.Second, p.name+" hands its vote over", func() bool { return !p.alive })
	p.sessionUntil = 0
}

func (r *rollout) rest(founders int) {
	r.pass(30*time.Second, fmt.Sprint("all founders vote, and no other, of ", founders), func() bool {
		e := Explain(r.view())
		return r.leader != 0 && len(r.config.Outgoing) == 0 && !e.Due && e.Eligible == founders &&
			len(r.config.Voters) == odd(min(founders, r.settings.Voters))
	})
}

// scale changes the number of founders, in random order where OPERATION.md permits this.
func (r *rollout) scale(from, to int) {
	for i := from; i < to; i++ {
		r.enter(i, to)
	}
	order := r.rng.Perm(min(from, to))
	for _, i := range order {
		if from < to && from > 1 || r.chance(0.5) {
			r.rest(len(r.settings.Founders)) // wait until the previous one is ready
		}
		r.goes(i)
		r.enter(i, to)
	}
	for i := from - 1; i >= to; i-- {
		if r.chance(0.5) {
			r.rest(len(slices.DeleteFunc(slices.Clone(r.settings.Founders),
				func(f string) bool { return f > fmt.Sprint("n", i) })))
		}
		r.goes(i)
	}
	r.rest(to)
}

// TestScaling scales from one founder to three, to five and back. Every leaver may stop in time,
// and the majority of the current voters is never lost.
func TestScaling(t *testing.T) {
	for seed := range budget(200) {
		r := &rollout{names: map[*proc][]string{}}
		r.world = newWorld(uint64(seed), 1, Settings{Voters: []int{3, 5}[seed%2], Founders: foundersTo(1),
			Durable: seed%3 == 0}, []string{"a"})
		r.careful, r.names[r.procs[0]] = true, foundersTo(1)
		for _, to := range [...][2]int{{1, 3}, {3, 5}, {5, 3}, {3, 1}} {
			r.scale(to[0], to[1])
		}
		if r.fault != "" {
			t.Fatalf("MORTISE_SEED=%d: %s\n%s", seed, r.fault, r.dump())
		}
	}
}
