package whole

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const callers = 6

// stormy lets callers and faults run, and the instances that are not yet there join.
func (r *run) stormy(random *rand.Rand, first int) {
	until := time.Now().Add(r.storm)
	var group sync.WaitGroup
	for n := range callers {
		c := r.newCaller(n, n >= callers-r.guests)
		if r.has(Part{Kind: ACaller, N: n}, "the calls of "+c.name) {
			group.Go(func() { c.spend(until) })
		} else {
			c.end()
		}
	}
	r.grow(random, first)
	for n := 0; ; n++ {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(600*time.Millisecond)))
		if !time.Now().Before(until) {
			break
		}
		// Each fault draws from a source of its own, so that the others stay the same without it.
		r.fault(n, rand.New(rand.NewPCG(r.seed, uint64(1000+n))))
	}
	r.heal()
	group.Wait()
}

func (r *run) heal() {
	for i := range r.nodes {
		r.disks[i].mend()
		for j := range i {
			r.net.Heal(host(i), host(j))
		}
		for g := range callers {
			r.net.Heal(host(i), guestHost(g))
		}
	}
}

// fault does something to one instance, which is the leader half the time, and undoes it. If the
// run goes without this fault, it takes the same time.
func (r *run) fault(n int, random *rand.Rand) {
	i := random.IntN(r.plan.nodes)
	if l := r.leader(); l >= 0 && random.IntN(2) == 0 {
		i = l
	}
	d := time.Duration(random.Int64N(int64(3 * time.Second)))
	if random.IntN(3) == 0 {
		d /= 20
	}
	mend := func() { r.disks[i].mend() }
	again := func() { r.revive(i, false) }
	all := []struct {
		name  string
		begin func()
		end   func() // after the time d; nil means that the fault takes no time
	}{
		{"kill", func() { r.kill(i) }, func() { r.revive(i, random.IntN(2) == 0) }},
		{"kill and start", func() { r.kill(i); again() }, nil},
		{"leave", func() { r.leave(i) }, again},
		{"close", func() { r.shut(i) }, again},
		{"cut", func() { r.others(i, r.net.Cut) }, r.heal},
		{"cut of one", func() { r.net.Cut(host(i), r.other(i, random)) }, r.heal},
		{"cut one way", func() { r.net.CutOneWay(host(i), r.other(i, random)) }, r.heal},
		{"deaf", func() { r.others(i, func(a, b string) { r.net.CutOneWay(b, a) }) }, r.heal},
		{"dumb", func() { r.others(i, r.net.CutOneWay) }, r.heal},
		{"reset", func() { r.net.Reset(host(i)) }, nil},
		{"slow disk", func() { r.disks[i].slow(d / 50) }, mend},
		{"hung disk", func() { r.disks[i].hang() }, mend},
		{"broken disk", func() { r.disks[i].fail() }, func() { mend(); r.kill(i); again() }},
	}
	kinds := len(all)
	if !r.dirs {
		kinds -= 3 // no disks
	}
	f := all[random.IntN(kinds)]
	text := fmt.Sprintf("%s of node %d for %v", f.name, i, d)
	if f.end == nil {
		text = fmt.Sprintf("%s of node %d", f.name, i)
	}
	happens := r.has(Part{Kind: AFault, N: n}, text)
	if happens {
		r.say("fault: %s", text)
		r.count(f.name)
		r.shows.fault(r.elapsed(), lane(i), text, d, f.end != nil)
		f.begin()
	}
	if f.end == nil {
		return
	}
	time.Sleep(d)
	if happens {
		f.end()
	}
}

// revive starts an instance that does not run.
func (r *run) revive(i int, powerLost bool) {
	if r.node(i) == nil {
		r.start(i, powerLost && r.power)
	}
}

func (r *run) shut(i int) {
	if n, _ := r.detach(i); n != nil {
		r.close(i, n)
	}
}

func (r *run) others(i int, do func(a, b string)) {
	for j := range r.nodes {
		if j != i {
			do(host(i), host(j))
		}
	}
}

func (r *run) other(i int, random *rand.Rand) string {
	if r.plan.nodes == 1 || random.IntN(5) == 0 {
		return guestHost(random.IntN(callers))
	}
	return host((i + 1 + random.IntN(r.plan.nodes-1)) % r.plan.nodes)
}

func (d *disk) slow(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay = delay
}

func (d *disk) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hangs == nil {
		d.hangs = make(chan struct{})
	}
}

func (d *disk) fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = errFault
}

func (d *disk) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay, d.fault = 0, nil
	if d.hangs != nil {
		close(d.hangs)
		d.hangs = nil
	}
}
