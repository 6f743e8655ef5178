package lead

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Term returns the term of the last evaluation.
func (l *Lead) Term() uint64 { return l.term }

func (l *Lead) governs(term uint64) bool { return l.leads && l.term == term }

// Question returns the encoded Prepare for a step.
func (l *Lead) Question(step voters.Step, group, at uint64, configuration []founding.Voter) []byte {
	return founding.AppendPrepare(nil, founding.Prepare{
		To: step.Instance, Group: group, Raft: step.ID, Term: l.term, At: at, Voters: configuration,
	})
}

// Answered records the outcome of a Prepare question, and reports whether to call Look again. An
// answer that cannot be decoded counts as silence, after which the reconciler waits and asks
// again. A refused connection has the same effect as an instance that declines. If the instance
// declines, the result declined contains its reason.
func (l *Lead) Answered(now time.Duration, term uint64, step voters.Step, outcome founding.Outcome,
	answer []byte) (look bool, declined string) {
	if !l.governs(term) || outcome == founding.Silent {
		return false, ""
	}
	state := voters.Refused
	if outcome == founding.Answered {
		p, err := founding.DecodePrepared(step.Instance, answer)
		if err != nil || p.Instance != step.Instance || p.Raft != step.ID {
			return false, ""
		}
		switch p.State {
		case founding.Running:
			state = voters.Running
		case founding.Ended:
			state = voters.Ended
		default:
			declined = p.Detail
		}
	}
	l.reconciler.Answered(now, step.ID, state)
	return true, declined
}

// Probed records the outcome of a probe, and reports whether to call Look again. An incarnation has
// ended if the connection to its address is refused, or if another instance proves its own ID
// there, which is by. An answer of another program proves nothing, because several machines may
// share the address.
func (l *Lead) Probed(now time.Duration, term uint64, p voters.Probe, outcome founding.Outcome,
	by nodeid.ID) (look bool) {
	if !l.governs(term) {
		return false
	}
	over := outcome == founding.Refused || outcome == founding.Other
	l.reconciler.Probed(now, p.ID, over, by)
	return over
}

// PeerLost records that an instance has reported, on its own connection, that its replica has
// ended. It reports whether to call Look again. It does nothing if the instances have
// directories, since the next process may resume the replica.
func (l *Lead) PeerLost(instance nodeid.ID, configuration []founding.Voter) (look bool) {
	if !l.leads || l.facts.Settings.Durable {
		return false
	}
	for _, v := range configuration {
		if v.Instance == instance {
			l.reconciler.Retired(v.Raft)
			look = true
		}
	}
	return look
}
