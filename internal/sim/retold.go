package sim

import "github.com/mortise-lock/mortise/internal/replica"

// This file is how people change a setting of a running group: instances that start are told a new
// value than those that run, and the group adopts it when all name it.

// retell changes now and then what instances are told that start from then on.
func (w *world) retell() {
	if w.cfg.Retold == 0 {
		return
	}
	w.after(w.between(0, 2*w.cfg.Retold), func() {
		if !w.calm {
			w.told = int64(1+w.rng.IntN(3)) << 30
			w.note("instances that start are told MaxSessionBytes %d", w.told)
			w.retell()
		}
	})
}

// own are the settings that this process was started with.
func (p *proc) own() replica.Settings {
	own := replica.FoundedWith(p.w.cfg.settings())
	if p.m.told != 0 {
		own.SessionBytes, own.GroupBytes = p.m.told, p.m.told
	}
	return own
}

// unadopted says what all instances name and the group does not have, or returns "".
func (w *world) unadopted(l *ownReplica) string {
	named := map[replica.Named]bool{}
	for _, m := range w.machines {
		if m.proc != nil && !m.gone {
			named[m.proc.own().Named()] = true
		}
	}
	if own, is := l.p.own(), l.Settings(); len(named) == 1 && is != nil && is.Named() != own.Named() {
		return "all instances name a setting that the group has not adopted"
	}
	return ""
}
