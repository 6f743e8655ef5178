package whole

import (
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
		group.Go(func() { c.spend(until) })
	}
	r.grow(random, first)
	for {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(600*time.Millisecond)))
		if !time.Now().Before(until) {
			break
		}
		r.fault(random)
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

// fault does something to one instance, which is the leader half the time, and undoes it.
func (r *run) fault(random *rand.Rand) {
	i := random.IntN(r.plan.nodes)
	if l := r.leader(); l >= 0 && random.IntN(2) == 0 {
		i = l
	}
	d := time.Duration(random.Int64N(int64(3 * time.Second)))
	if random.IntN(3) == 0 {
		d /= 20
	}
	all := []struct {
		name string
		do   func()
	}{
		{"kill", func() { r.kill(i); time.Sleep(d); r.revive(i, random.IntN(2) == 0) }},
		{"kill and start", func() { r.kill(i); r.revive(i, false) }},
		{"leave", func() { r.leave(i); time.Sleep(d); r.revive(i, false) }},
		{"close", func() { r.shut(i); time.Sleep(d); r.revive(i, false) }},
		{"cut", func() { r.others(i, r.net.Cut); time.Sleep(d); r.heal() }},
		{"cut of one", func() { r.net.Cut(host(i), r.other(i, random)); time.Sleep(d); r.heal() }},
		{"cut one way", func() { r.net.CutOneWay(host(i), r.other(i, random)); time.Sleep(d); r.heal() }},
		{"deaf", func() {
			r.others(i, func(a, b string) { r.net.CutOneWay(b, a) })
			time.Sleep(d)
			r.heal()
		}},
		{"dumb", func() { r.others(i, r.net.CutOneWay); time.Sleep(d); r.heal() }},
		{"reset", func() { r.net.Reset(host(i)) }},
		{"slow disk", func() { r.disks[i].slow(d / 50); time.Sleep(d); r.disks[i].mend() }},
		{"hung disk", func() { r.disks[i].hang(); time.Sleep(d); r.disks[i].mend() }},
		{"broken disk", func() {
			r.disks[i].fail()
			time.Sleep(d)
			r.disks[i].mend()
			r.kill(i)
			r.revive(i, false)
		}},
	}
	n := len(all)
	if !r.dirs {
		n -= 3 // no disks
	}
	f := all[random.IntN(n)]
	r.say("fault: %s of node %d for %v", f.name, i, d)
	r.count(f.name)
	f.do()
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
