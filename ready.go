package mortise

import (
	"context"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
)

// settleTime keeps a group without a spare instance from blocking a deployment forever. It is
// longer than the minute after which a silent voter with a directory is replaced.
const settleTime = 90 * time.Second

const (
	settlePoll = 100 * time.Millisecond
	// lastAsk is the shortest time for an answer about the voters. A Ready that is called after
	// settleTime still asks once, so that its warning is about the present.
	lastAsk = time.Second
)

// Ready waits until this node can get locks: its session is attached to a leader and the group is
// past its grace. The first call also waits, for at most 90 s, until no change of the voters is due
// or in progress. So a rolling deployment that waits for Ready cannot stop instances faster than
// the group replaces voters. Ready also warms up: the first request after it opens no session and
// searches for no leader.
//
// If ctx ends before that, Ready returns an error that wraps the context's error and names what is
// missing. It returns the error of Node.Err if the node has failed, and ErrLeaving if the node has
// begun to leave, also if this happens while Ready waits. For a readiness probe see
// docs/OPERATION.md.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.admit(ctx); err != nil {
		return err
	}
	if err := n.client.WaitReady(ctx); err != nil {
		return n.explain("wait until ready", err)
	}
	if !n.config.alone() && !n.settled.Load() {
		if err := n.awaitVoters(ctx); err != nil {
			return err
		}
	}
	return n.admit(ctx)
}

// awaitVoters waits until the leader reports that no change of the voters is due. It returns nil
// then, and also when settleTime has passed since the first call. It returns an error if ctx or the
// node ends first.
func (n *Node) awaitVoters(ctx context.Context) error {
	now := n.engine.Now()
	n.settleBy.CompareAndSwap(0, int64(now.Add(settleTime)))
	bounded, cancel := context.WithTimeout(ctx, max(clock.Time(n.settleBy.Load()).Sub(now), lastAsk))
	defer cancel()
	for {
		settled, err := n.askVoters(bounded)
		switch {
		case err == nil && settled:
			n.settled.Store(true)
			return nil
		case n.admit(ctx) != nil:
			return n.admit(ctx)
		case ctx.Err() != nil:
			return n.explain("wait until ready", &settleError{err: ctx.Err(), why: n.unsettledWhy()})
		case bounded.Err() != nil:
			n.config.Logger.Warn("ready, although the voters are still changing", "why", n.unsettledWhy())
			n.settled.Store(true)
			return nil
		}
		pause(bounded, settlePoll)
	}
}

// askVoters asks a leader whether the voters are settled, and records its reason if they are not.
func (n *Node) askVoters(ctx context.Context) (settled bool, err error) {
	status, err := n.engine.QueryStatus(ctx)
	if err != nil {
		return false, err
	}
	why := status.Report.Next.Why
	n.unsettled.Store(&why)
	return n.knows(&status) && !status.Due, nil
}

// knows reports whether the leader has this node's session in its report, and so would wait for it.
// A member is not part of that report.
func (n *Node) knows(status *cluster.VoterStatus) bool {
	return status.Known || n.engine.Picture().Member
}

// unsettledWhy returns what Ready waits for, as the last leader that answered has said.
func (n *Node) unsettledWhy() string {
	if why := n.unsettled.Load(); why != nil {
		return *why
	}
	return "no leader has answered whether the voters are settled"
}

type settleError struct {
	err error
	why string
}

func (e *settleError) Error() string { return e.err.Error() + " (" + e.why + ")" }

func (e *settleError) Unwrap() error { return e.err }

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
