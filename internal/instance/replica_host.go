package instance

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
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

// warnNoRoom tells the operator, at most once a minute for each replica, that a budget of bytes is used up. The caller of the refused
// request gets an error of its own.
func (r *ownReplica) warnNoRoom(result *lockfsm.Result) {
	err := client.BudgetErrorOf(result.Code, result.Budget)
	if err == nil {
		return
	}
	holder := ""
	if s, ok := r.core.Machine().Session(result.Session); ok {
		holder = replica.HolderName(s.Record, s.ID)
	}
	usage := r.core.Machine().Usage()
	r.noRoom.warn(r.node, "a request was refused because a budget of bytes is used up", "request", result.Kind.String(), "of", holder,
		"group_bytes", usage.Bytes, "group_budget", usage.Budget, "err", err)
}
