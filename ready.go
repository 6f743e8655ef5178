package mortise

import (
	"context"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// settleTime bounds how long the first Ready waits for changes of the voters: a group that cannot replace a voter, since nobody is
// there, must not stop a deployment for ever.
const settleTime = 30 * time.Second

// Ready waits until this node can be granted locks: its session is attached to a leader and the group is past its grace. The first time
// it also waits, for at most 30 s, until no change of the voters is due or in flight, so that a rolling deployment that is paced by it
// cannot be faster than the replacement of voters. It returns nil then; an error that wraps the context's and says what is missing if ctx
// ends before; the node's own error; or ErrLeaving if it has begun to leave, since it is granted nothing then. It is what a readiness probe
// should ask; docs/SIZING.md says how, where a service has work that needs no locks.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.admit(ctx); err != nil {
		return err
	}
	if err := n.client.WaitReady(ctx); err != nil {
		return n.explain("wait until ready", err)
	}
	if n.config.alone() || n.settled.Load() {
		return nil
	}
	now := n.engine.Now()
	n.settleBy.CompareAndSwap(0, int64(now.Add(settleTime)))
	bounded, cancel := context.WithTimeout(ctx, clock.Time(n.settleBy.Load()).Sub(now))
	defer cancel()
	why := n.awaitVoters(bounded)
	if ctx.Err() != nil {
		return n.explain("wait until ready", &settleError{err: ctx.Err(), why: why})
	}
	if why != "" {
		n.config.Logger.Warn("ready, although the voters are not what they should be", "why", why)
	}
	n.settled.Store(true)
	return nil
}

// awaitVoters waits until the leader says that no change of the voters is due, and returns what it still waits for when ctx ends.
func (n *Node) awaitVoters(ctx context.Context) (why string) {
	why = "no leader has said within " + settleTime.String() + " that the voters are as they should be"
	for ctx.Err() == nil {
		counsel, err := n.engine.Consult(ctx)
		switch {
		case err != nil:
			return why
		case (counsel.Known || n.engine.Picture().Member) && !counsel.Due: // the leader's look does not count members
			return ""
		}
		why = counsel.Report.Next.Why
		pause(ctx, settlePoll)
	}
	return why
}

// settlePoll is the time between two questions whether the voters are settled.
const settlePoll = 100 * time.Millisecond

// settleError is the end of the context of a Ready that waited for the voters.
type settleError struct {
	err error
	why string
}

func (e *settleError) Error() string { return e.err.Error() + " (" + e.why + ")" }

func (e *settleError) Unwrap() error { return e.err }
