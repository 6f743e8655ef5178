package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session/client"
)

const (
	// leaveTime bounds Leave where its context does not.
	leaveTime = 10 * time.Second
	// leaderless is how long a leaver goes on asking for a leader to hand its vote to: longer than any election of a group that has a
	// majority.
	leaderless = 3 * time.Second
	// lastWords bounds what nobody may be left to answer: the end of a session when all leave.
	lastWords = time.Second
	// departPoll is the time between two questions whether this instance may stop.
	departPoll = 20 * time.Millisecond
	// stopPoll is the same for a replica that was removed.
	stopPoll = 100 * time.Millisecond
)

// Leave takes the instance out of the cluster in good order, and closes it. It is mortise's Node.Leave.
func (n *Instance) Leave(ctx context.Context) error {
	if n.Err() != nil {
		return n.Close() // it has ended already
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, leaveTime)
		defer cancel()
	}
	n.leaveOnce.Do(func() { close(n.leaving) })
	var held error
	for _, c := range n.clients() {
		c.Leaving()
	}
	for _, c := range n.clients() {
		held = cmp.Or(c.WaitReleased(ctx), held)
	}
	last := ctx
	alone, kept := n.depart(ctx)
	if alone {
		var cancel context.CancelFunc
		last, cancel = context.WithTimeout(ctx, lastWords)
		defer cancel()
	}
	for _, c := range n.clients() {
		if held != nil {
			break
		}
		switch err := c.CloseSession(last); {
		case errors.Is(err, client.ErrStillHeld):
			held = err
		case err != nil:
			n.logger.Info("the session was not closed and runs out by itself", "why", err)
		}
	}
	if held != nil {
		held = fmt.Errorf("mortise: left with locks that were not unlocked; they expire with the session: %w", held)
	}
	if c := n.cluster(); c != nil {
		c.Leave(ctx)
	}
	return errors.Join(held, kept, n.Close())
}

// depart waits until the group can do without this instance (rules 12 and 13): its replica votes, appends and acknowledges until a leader
// other than itself reports that a configuration without it is applied. It returns alone if there is no instance left to wait for: all
// leave, or there is no leader and has been none for longer than an election takes. The error says why a vote is lost to those that stay.
func (n *Instance) depart(ctx context.Context) (alone bool, kept error) {
	c := n.cluster()
	if c == nil || c.Status().Phase != cluster.PhaseMember {
		return true, nil
	}
	why := "" // the leader's words; empty: none has answered
	for r := n.replica.Load(); r != nil; r = n.replica.Load() {
		if ctx.Err() != nil {
			return false, n.voteLost(r, why)
		}
		asking, cancel := context.WithTimeout(ctx, leaderless)
		counsel, err := c.ConsultFor(asking, r.id)
		cancel()
		switch {
		case err != nil && ctx.Err() != nil: // what the leader said before holds
		case err != nil:
			if kept = n.voteLost(r, ""); kept == nil {
				n.logger.Info("this instance leaves without handing its vote over", "why", err)
			}
			return true, kept
		case counsel.AllLeaving:
			n.seeOff(ctx)
			return true, nil
		case counsel.MayStop:
			return false, nil
		default:
			why = strings.Join(append([]string{counsel.Report.Next.Why}, counsel.Remarks...), "; ")
		}
		pause(ctx, departPoll)
	}
	return false, nil
}

// voteLost is what Leave returns if this replica votes, and no instance has taken its vote over. why is what the leader said that it waits
// for. Without a leader's word other instances are known to be here only by their connections.
func (n *Instance) voteLost(r *ownReplica, why string) error {
	if !r.votes() || why == "" && !n.company(r) {
		return nil
	}
	why = cmp.Or(plain.Text(why), "no leader has answered")
	n.logger.Warn("this instance leaves with a vote that no other instance has taken over", "why", why)
	return fmt.Errorf("%w: %s", ErrVoteLost, why)
}

// isLeaving reports whether this node has begun to leave.
func (n *Instance) isLeaving() bool {
	select {
	case <-n.leaving:
		return true
	default:
		return false
	}
}

// seeOff lets a leader whom everybody leaves go last, so that the others need not elect another one to be told that they may go.
func (n *Instance) seeOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for ctx.Err() == nil {
		r := n.replica.Load()
		if r == nil || !r.role.Load().Leading || !n.company(r) {
			return
		}
		pause(ctx, departPoll)
	}
}

// company reports whether another replica of the configuration is connected.
func (n *Instance) company(r *ownReplica) bool {
	for _, v := range replica.Placed(r.config.Load()) {
		if v.Instance != n.instance() && n.linked(v.Instance) {
			return true
		}
	}
	return false
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Close stops the instance at once and waits until everything that it started has ended. It is mortise's Node.Close.
func (n *Instance) Close() error {
	closed := client.ErrClosed
	n.failed.CompareAndSwap(nil, &closed)
	n.leaveOnce.Do(func() { close(n.leaving) })
	err := n.shut()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.goroutines.Wait()
	return errors.Join(err, n.trace.Close())
}

// shut stops all rooms, in an order in which none of them needs one that is stopped. Whoever calls it second waits for the first,
// and not by a sync.Once, which holds a lock across the wait.
func (n *Instance) shut() (err error) {
	if !n.shutting.CompareAndSwap(false, true) {
		<-n.shutDone
		return nil
	}
	defer close(n.shutDone)
	n.own.shut()
	n.client.Close()
	if c := n.cluster(); c != nil {
		err = c.Close()
	}
	n.binding.Lock()
	n.ended = true
	r := n.replica.Swap(nil)
	n.binding.Unlock()
	if r != nil {
		r.stop()
	}
	return errors.Join(err, n.port.Close(), n.closeDir())
}
