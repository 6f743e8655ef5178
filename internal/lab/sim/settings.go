package sim

import (
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Operators change a setting by starting instances with a new value. The group adopts the value
// when all instances name it.

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

func (p *proc) own() replica.Settings {
	own := replica.FoundedWith(p.w.cfg.settings())
	if p.m.told != 0 {
		own.SessionBytes, own.GroupBytes = p.m.told, p.m.told
	}
	return own
}

// record returns what this instance reports about itself when it opens its session.
func (p *proc) record() replica.Record {
	own := p.own()
	return replica.Record{
		Instance: p.instance.String(), Name: p.m.name, Zone: p.m.zone, Addr: p.m.addr, Rules: lockfsm.RulesVersion,
		Settings: own.Named(), Founders: own.Founders,
	}
}

// unadopted returns an error text if all instances name the same settings and the group has not
// adopted them. Otherwise it returns "".
func (w *world) unadopted(l *ownReplica) string {
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
