package sim

import "iter"

// fleet is all machines of a run, with what runs on them.
type fleet struct {
	*site
	machines []*host
}

func newFleet(cfg Config) *fleet {
	w := newWorld(cfg)
	net, watch := newNetwork(w), newWatch(w)
	f := &fleet{site: &site{world: w, net: net, watch: watch, ports: map[*machine]*port{}}}
	for i := range cfg.Machines {
		m := newMachine(w, i)
		net.machines, f.machines = append(net.machines, m), append(f.machines, newHost(f.site, m))
	}
	return f
}

// begins sets what is called when a process has started.
func (w *fleet) begins(then func(*proc)) {
	for _, m := range w.machines {
		m.then = then
	}
}

func (w *fleet) host(m *machine) *host { return w.machines[m.id] }

func (w *fleet) procs() iter.Seq[*proc] {
	return func(yield func(*proc) bool) {
		for _, m := range w.machines {
			if m.proc != nil && !yield(m.proc) {
				return
			}
		}
	}
}

func (w *fleet) replicas() iter.Seq[*ownReplica] {
	return func(yield func(*ownReplica) bool) {
		for p := range w.procs() {
			if p.replica != nil && !yield(p.replica) {
				return
			}
		}
	}
}

func (w *fleet) leader() (best *ownReplica) {
	for r := range w.replicas() {
		if role := r.Role(); role.Leading && (best == nil || role.Term > best.Role().Term) {
			best = r
		}
	}
	return best
}

func (w *fleet) any() *host { return w.machines[w.rng.IntN(len(w.machines))] }
