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
// the group replaces voters. If an instance has come back without its directory ([Config.Dir]),
// this wait has no limit but ctx, since the next loss would end the group. Ready also warms up: the
// first request after it opens no session and searches for no leader.
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
// then, and also when settleTime has passed since the first call, if that is bearable. It returns
// an error if ctx or the node ends first.
func (n *Node) awaitVoters(ctx context.Context) error {
	n.settleBy.CompareAndSwap(0, int64(n.engine.Now().Add(settleTime)))
	// With a directory, the session of this instance's last process may stand. So the leader's last
	// look, which is up to 50 ms old, can know this instance and be older than its start.
	wanted := 1
	if n.config.Dir != "" {
		wanted = 2
	}
	for {
		left := clock.Time(n.settleBy.Load()).Sub(n.engine.Now())
		settled := n.askVoters(ctx, max(left, lastAsk))
		last := n.unsettled.Load()
		if settled {
			wanted--
		}
		switch {
		case wanted == 0:
			n.settled.Store(true)
			return nil
		case n.admit(ctx) != nil:
			return n.admit(ctx)
		case ctx.Err() != nil:
			return n.explain("wait until ready", &settleError{err: ctx.Err(), why: last.reason()})
		case left <= 0 && !settled && last.bearable():
			n.config.Logger.Warn("ready, although the voters are still changing", "why", last.reason())
			n.settled.Store(true)
			return nil
		}
		pause(ctx, settlePoll)
	}
}

// askVoters asks a leader whether the voters are settled, and records what it says.
func (n *Node) askVoters(ctx context.Context, within time.Duration) (settled bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	status, err := n.engine.QueryStatus(ctx)
	if err != nil {
		return false
	}
	n.unsettled.Store(&unsettled{why: status.Report.Next.Why, renewing: status.Report.Renewing})
	return n.knows(&status) && !status.Due
}

// knows reports whether the leader has this node's session in its report, and so would wait for it.
// A member is not part of that report.
func (n *Node) knows(status *cluster.VoterStatus) bool {
	return status.Known || n.engine.Picture().Member
}

// bearable reports whether a node may count as ready after settleTime although the voters change.
// It may not if no leader has answered, or if a leader replaces a voter that has lost its
// directory, since the next loss could end the group.
func (u *unsettled) bearable() bool { return u != nil && !u.renewing }

func (u *unsettled) reason() string {
	if u == nil {
		return "no leader has answered whether the voters are settled"
	}
	return u.why
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
