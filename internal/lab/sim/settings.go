package sim

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/replica"
)

// Operators change a setting by starting instances with a new value. The group adopts the value
// when all instances name it.

func (w *fleet) retell() {
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

// unadopted returns an error text if all instances name the same settings and the group has not
// adopted them. Otherwise it returns "".
func (w *fleet) unadopted(l *ownReplica) string {
	named := map[replica.Named]bool{}
	for p := range w.procs() {
		if !p.m.gone {
			named[p.own().Named()] = true
		}
	}
	if own, is := l.p.own(), l.Settings(); len(named) == 1 && is != nil && is.Named() != own.Named() {
		return "all instances name a setting that the group has not adopted"
	}
	return ""
}

// misplaced returns how the configuration of a healed group differs from the one that the rules
// require, or "".
func (w *fleet) misplaced(l *ownReplica) string {
	eligible := 0
	for _, m := range w.machines {
		if !m.gone && (len(w.cfg.Founders) == 0 || slices.Contains(w.cfg.Founders, m.name)) {
			eligible++
		}
	}
	wanted := min(w.cfg.Voters, eligible)
	votes := wanted - (wanted+1)%2
	c := l.Configuration()
	if len(c.Outgoing) > 0 || len(c.Voters) != votes || len(c.Learners) != wanted-votes {
		return "the configuration is not what is wanted: " + configText(c)
	}
	missing := len(c.Members)
	for r := range w.replicas() {
		switch {
		case replica.Names(c, r.ID, r.p.instance):
			missing--
		case r.Configuration().Index > 0:
			return r.p.String() + " runs a replica that was removed"
		}
	}
	if missing > 0 {
		return "no process runs a replica of the configuration: " + configText(c)
	}
	return ""
}
