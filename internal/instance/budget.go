package instance

import (
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// warnNoRoom logs, at most once a minute for each replica, that a budget of bytes is used up.
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
	r.noRoom.warn(r.node, "a request was refused because a budget of bytes is used up", "request",
		result.Kind.String(), "of", holder,
		"group_bytes", usage.Bytes, "group_budget", usage.Budget, "err", err)
}
