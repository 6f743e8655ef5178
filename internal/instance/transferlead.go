package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// transferLead moves the leadership from this replica to the voter named q.Key, at the request of
// an operator. The audit log has the request before the leadership moves, also if it then does not.
func (r *ownReplica) transferLead(ctx context.Context, q replica.Question) (*replica.Answer, error) {
	heir, leads := r.node.cluster().Heir(q.Key)
	if !leads {
		return nil, replica.ErrNoLead
	}
	a := &replica.Answer{LedBy: r.node.config.Name, Refusal: heir.Refusal}
	if q.Key == a.LedBy {
		a.Refusal = voters.LeadsNow // although the group may not know this instance's name yet
	}
	if a.Refusal != voters.Fit {
		return a, nil
	}
	by, why, to := q.By, q.Reason, plain.Text(q.Key)
	q.Reason = plain.Cut(fmt.Sprintf("from %s to %s: %s", plain.Text(a.LedBy), to, why), lockfsm.MaxValueBytes)
	if _, err := r.answer(ctx, q); err != nil {
		return nil, err
	}
	r.node.logger.Warn("an operator moves the lead to another voter", "from", plain.Text(a.LedBy), "to", to, "by", by,
		"reason", why)
	switch err := r.log.Transfer(ctx, heir.Raft); {
	case errors.Is(err, raftlog.ErrTransfer):
		r.node.logger.Warn("the lead was not taken over", "by", to, "why", err)
		a.Refusal = voters.NotTaken
	case err != nil:
		return nil, err
	}
	return a, nil
}
