package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// depart waits until the group can do without this instance, and reports whether it may be alone: that no instance is left to wait for.
// The error says why a vote is lost to those that stay.
func (n *Instance) depart(ctx context.Context) (alone bool, kept error) {
	var d cluster.Departure
	for {
		leaver := n.leaver(ctx)
		next := d.Next(leaver)
		if next.Ask {
			next = d.Heard(n.ask(ctx, leaver.Raft))
			if next.Alone && !next.SeeOff && next.Lost == "" {
				n.logger.Info("this instance leaves without handing its vote over", "why", cluster.ErrNoLeader)
			}
		}
		if !next.Ask {
			return next.Alone, n.part(ctx, next)
		}
		pause(ctx, departPoll)
	}
}

// ask asks the leader about a replica, and returns what this instance sees of itself then. It returns nil if no leader has answered.
func (n *Instance) ask(ctx context.Context, raft uint64) (cluster.Leaver, *cluster.Counsel) {
	asking, cancel := context.WithTimeout(ctx, leaderless)
	defer cancel()
	counsel, err := n.cluster().ConsultFor(asking, raft)
	if err != nil {
		return n.leaver(ctx), nil
	}
	return n.leaver(ctx), &counsel
}

// part ends a departure. The error wraps ErrVoteLost.
func (n *Instance) part(ctx context.Context, p cluster.Parting) error {
	if p.SeeOff {
		n.seeOff(ctx)
	}
	if p.Lost == "" {
		return nil
	}
	why := plain.Text(p.Lost)
	n.logger.Warn("this instance leaves with a vote that no other instance has taken over", "why", why)
	return fmt.Errorf("%w: %s", ErrVoteLost, why)
}

// leaver is what this instance sees of itself.
func (n *Instance) leaver(ctx context.Context) cluster.Leaver {
	c, r := n.cluster(), n.replica.Load()
	l := cluster.Leaver{Member: c != nil && c.Status().Phase == cluster.PhaseMember, TimeOver: ctx.Err() != nil}
	if r != nil {
		l.Raft, l.Votes, l.Leads, l.Company = r.id, r.votes(), r.role.Load().Leading, n.company(r)
	}
	return l
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

// seeOff lets a leader that all instances leave go last.
func (n *Instance) seeOff(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for ctx.Err() == nil && n.leaver(ctx).Stays() {
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
	n.goroutines.end()
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
