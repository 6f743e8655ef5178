package lead

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is what a leader asks other instances for the sake of the voters, and what it makes of
// the answers. Each answer names the term in which it was asked for: one of a lead that is over
// means nothing any more.

// Term is that of the lead in which the last look was.
func (l *Lead) Term() uint64 { return l.term }

func (l *Lead) governs(term uint64) bool { return l.leads && l.term == term }

// Question is the question that asks an instance to start an empty replica.
func (l *Lead) Question(step voters.Step, group, at uint64, configuration []founding.Voter) []byte {
	return founding.AppendPrepare(nil, founding.Prepare{
		To: step.Instance, Group: group, Raft: step.ID, Term: l.term, At: at, Voters: configuration,
	})
}

// Answered takes what became of such a question, and reports whether to look again. Silence and
// what cannot be understood are no answer: the steward waits, and asks anew. That the instance is
// not there any more is one. declined is why an instance does not do it.
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
	l.steward.Answered(now, step.ID, state)
	return true, declined
}

// Probed takes what became of a probe, and reports whether to look again. A life is over if the
// connection to its address is refused, or if another instance proves that it is there. An instance
// that is silent may be slow. What listens there without being one of ours proves nothing: the
// address may be shared, or have been given to another service.
func (l *Lead) Probed(now time.Duration, term uint64, p voters.Probe, outcome founding.Outcome) (look bool) {
	if !l.governs(term) {
		return false
	}
	over := outcome == founding.Refused || outcome == founding.Other
	l.steward.Probed(now, p.ID, over)
	return over
}

// Gone takes that an instance has said on its own connection that the replica that it had is over,
// and reports whether to look again. With directories the next process may go on with it.
func (l *Lead) Gone(instance nodeid.ID, configuration []founding.Voter) (look bool) {
	if !l.leads || l.facts.Settings.Durable {
		return false
	}
	for _, v := range configuration {
		if v.Instance == instance {
			l.steward.Retired(v.Raft)
			look = true
		}
	}
	return look
}
