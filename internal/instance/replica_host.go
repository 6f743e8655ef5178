package instance

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

// replicaHost implements replica.Host: it hands on what the core of a replica decides, to the keeper, the
// cluster room and the observers. Its methods run on the log's owner goroutine.
type replicaHost struct{ r *ownReplica }

func (h replicaHost) Applying(index uint64, batch []byte) {
	if h.r.trail != nil {
		h.r.trail.Entry(index, batch)
	}
}

func (h replicaHost) Applied(result *lockfsm.Result) {
	if h.r.trail != nil {
		h.r.trail.Result(*result, h.r.core.Machine())
	}
}

func (h replicaHost) Answer(result *lockfsm.Result) {
	if e := result.Evicted; e != nil && result.Kind == lockfsm.Evict {
		h.r.node.logger.Warn("a lock was ended by force", "key", e.Key, "token", uint64(e.Token), "holder", replica.HolderName(e.Record, e.Session),
			"by", string(e.By), "reason", string(e.Reason))
	}
	if result.Budget != 0 {
		h.r.warnNoRoom(result)
	}
	h.r.keeper.Applied(result)
}

func (h replicaHost) Confirmed(term, round uint64) { h.r.keeper.Confirmed(term, round) }

func (h replicaHost) Leads(l keeper.Leadership) { h.r.keeper.Leads(l) }

func (h replicaHost) Born() clock.Time {
	h.r.born.Store(true)
	h.r.node.cluster().BornApplied(h.r.group)
	return h.r.node.env.clock.Now()
}

func (h replicaHost) Charter(rules uint32, settings *replica.Settings) {
	h.r.rules.Store(rules)
	if settings != nil {
		h.r.settings.Store(settings)
		h.r.node.cluster().Adopt(h.r.group, settings.Founding(h.r.node.config.Alone))
	}
}

func (h replicaHost) Look() { h.r.node.cluster().Look() }
