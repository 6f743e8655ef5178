package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/session/client"
)

const leaveTime = 10 * time.Second

// Leave implements mortise's Node.Leave: it hands over the vote, closes the sessions, and closes
// the instance.
func (n *Instance) Leave(ctx context.Context) error {
	if n.Err() != nil {
		return n.Close()
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, leaveTime)
		defer cancel()
	}
	n.ending.leave()
	n.sessions.Leaving()
	d, held := n.depart(ctx)
	if held == nil {
		held = n.closeSessions(ctx, d.Alone)
	}
	if held != nil {
		held = fmt.Errorf("mortise: left with locks that were not unlocked; they expire with the session: %w", held)
	}
	var lost error
	if d.Lost != "" {
		lost = fmt.Errorf("%w: %s", ErrVoteLost, plain.Text(d.Lost))
		n.logger.Warn("this instance leaves with a vote that no other instance has taken over", "why",
			plain.Text(d.Lost))
	}
	if c := n.cluster(); c != nil {
		c.Leave(ctx, d.Alone)
	}
	return errors.Join(held, lost, n.Close())
}

func (n *Instance) depart(ctx context.Context) (d cluster.Departure, held error) {
	for {
		l := n.leaver(ctx)
		switch d.Next(n.now(), l) {
		case cluster.Release:
			for _, c := range n.sessions.List() {
				err := c.WaitReleased(ctx)
				if err == client.ErrClosed && n.Err() == nil {
					continue // its user has closed this session, which held nothing
				}
				held = cmp.Or(err, held)
			}
		case cluster.Ask:
			status := n.ask(ctx, l.Raft)
			d.Heard(n.now(), n.leaver(ctx), status)
			if status == nil && d.Alone && d.Lost == "" {
				n.logger.Info("this instance leaves without handing its vote over", "why", cluster.ErrNoLeader)
			}
		case cluster.Pause:
			pause(ctx, cluster.DepartPoll)
		case cluster.Part:
			return d, held
		}
	}
}

// closeSessions closes the sessions. If alone is set, no other instance is left that could miss
// them, or depart has already logged that no leader answers.
func (n *Instance) closeSessions(ctx context.Context, alone bool) error {
	if alone {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cluster.FinalWait)
		defer cancel()
	}
	for _, c := range n.sessions.List() {
		switch err := c.CloseSession(ctx); {
		case errors.Is(err, client.ErrStillHeld):
			return err
		case err != nil && !alone:
			n.logger.Info("a session could not be closed; it expires by itself", "why", err)
		}
	}
	return nil
}

// ask asks the leader about a replica. It returns nil if no leader has answered.
func (n *Instance) ask(ctx context.Context, raft uint64) *cluster.VoterStatus {
	asking, cancel := context.WithTimeout(ctx, cluster.Leaderless)
	defer cancel()
	status, err := n.cluster().QueryStatusFor(asking, raft)
	if err != nil {
		return nil
	}
	return &status
}

func (n *Instance) now() time.Duration { return time.Duration(n.env.clock.Now()) }

// leaver returns the state on which a departure depends, except the held locks.
func (n *Instance) leaver(ctx context.Context) cluster.Leaver {
	c, r := n.cluster(), n.replica.Load()
	l := cluster.Leaver{Member: c != nil && c.Status().Phase == cluster.PhaseMember, TimeOver: ctx.Err() != nil}
	if r != nil {
		l.Raft, l.Votes, l.Leads, l.OthersConnected = r.ID, r.Votes(), r.Role().Leading, r.OthersConnected(n.instance(),
			n.linked)
	}
	return l
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Close implements mortise's Node.Close: it stops the instance without waiting for locks, and
// returns when everything that it has started has ended.
func (n *Instance) Close() error {
	n.ending.end(client.ErrClosed)
	n.goroutines.closing()
	n.ending.leave()
	err := n.shut()
	n.goroutines.end()
	return errors.Join(err, n.trace.Close())
}

// shut stops the components in an order in which no component uses a stopped one. The directory, or
// the run directory, is closed last, after all locks have ended: its lock shows a later start that
// this one has ended, see [storage.Dir.Site]. A second call waits for the first.
func (n *Instance) shut() (err error) {
	if !n.ending.shutting.CompareAndSwap(false, true) {
		<-n.ending.shut
		return nil
	}
	defer close(n.ending.shut)
	n.sessions.Close()
	if c := n.cluster(); c != nil {
		err = c.Close()
	}
	n.binding.Lock()
	n.binding.ended = true
	r := n.replica.Swap(nil)
	n.binding.Unlock()
	if r != nil {
		r.stop()
	}
	err = errors.Join(err, n.port.Close())
	return errors.Join(err, n.closeDir())
}

// fail ends the instance permanently, including its locks and its membership. The process
// continues.
func (n *Instance) fail(err error) {
	if n.ending.end(err) {
		n.logger.Error("this node has failed and holds nothing any more", "why", err)
		n.spawn(func() { _ = n.shut() })
	}
}
