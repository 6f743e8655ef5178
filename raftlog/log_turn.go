package raftlog

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// MaxDeferral is the time after which a deferrable batch is proposed alone, see Config.Deferrable.
// The wait may be twice as long, because the only timer may already run for an earlier batch. Much
// shorter timers are inexact while a process is idle.
const MaxDeferral = 2 * time.Millisecond

// runOwner is the owner goroutine. New input in the inbox wakes it. A timer also wakes it for the
// next tick, the end of MaxDeferral or the next step of a snapshot. A panic retires this replica,
// but does not end the process.
func (l *Log) runOwner() {
	var err error
	defer close(l.owner)
	defer func() { l.end(err) }()
	defer func() {
		if p := recover(); p != nil {
			err = l.panicked(p)
		} else if err == nil {
			err = l.panicked("runtime.Goexit was called")
		}
	}()
	timer := time.NewTimer(l.cfg.Tick)
	defer timer.Stop()
	set := true // the timer will fire
	for {
		fired, idle := l.wait(timer)
		set = set && !fired
		var now clock.Time // not read if the timer has not fired
		if fired {
			now = l.cfg.Clock.Now()
		}
		if idle {
			l.late(now)
		}
		l.gather()
		in, nothing, closed := l.swap()
		if closed {
			err = ErrClosed
			return
		}
		paced := l.taking.steps()
		if fired {
			l.starving.due = 0
		}
		if err = l.turn(in, fired, now); err != nil {
			return
		}
		l.step(fired && nothing)
		switch steps := l.taking.steps(); { // resetting a running timer would delay ticks
		case steps && (fired || !paced):
			timer.Reset(pace)
			set, l.starving.due = true, 0
		case fired:
			if next := l.core.NextTick(); next != 0 {
				now := l.cfg.Clock.Now()
				after := max(time.Millisecond, next.Sub(now))
				timer.Reset(after)
				set, l.starving.due = true, now.Add(after)
			}
		case !set && l.core.NextTick() != 0: // the replica was at rest
			timer.Reset(l.cfg.Tick)
			set = true
		}
		if l.core.DeferralBegins() {
			timer.Reset(MaxDeferral)
			set, l.starving.due = true, 0
		}
	}
}

// wait waits for input or for the timer. It reports whether the timer has fired, and whether the
// owner had nothing to do from before the timer was due. Only then a late timer shows that the
// process got no processor, and not that the previous turn was long.
func (l *Log) wait(timer *time.Timer) (fired, idle bool) {
	select {
	case <-timer.C:
		return true, false
	default: // the timer is not due yet
	}
	select {
	case <-l.wake:
		return false, false
	default:
	}
	select {
	case <-timer.C:
		return true, true
	case <-l.wake:
	}
	select { // after a gap both are ready
	case <-timer.C:
		return true, true
	default:
		return false, false
	}
}

// late measures how late an idle owner has woken.
func (l *Log) late(now clock.Time) {
	if l.starving.due == 0 {
		return
	}
	by := now.Sub(l.starving.due)
	l.core.Late(by)
	if text := l.starving.Late(now, by); text != "" {
		l.cfg.Logger.Warn(text)
	}
}

// turn passes the inbox to the core and carries out its Outputs. now is the time of a tick, if the
// timer has fired. Otherwise the clock is not read, because that costs as much as applying a
// command.
func (l *Log) turn(in *inbox, fired bool, now clock.Time) error {
	taken := len(in.batches) + l.core.Queued()
	if err := l.feed(in); err != nil {
		return err
	}
	in.empty()
	if fired {
		l.core.Tick(now)
		l.core.EndDeferral()
	}
	idle, err := l.core.Carry(shell{l})
	if err != nil {
		return err
	}
	if !idle {
		l.kick()
	}
	l.send()
	if l.called {
		l.where = inApplier
		l.cfg.Applier.TurnEnd()
		l.where, l.called = inRaft, false
	}
	l.settle()
	l.publishSurvey()
	l.publish(taken)
	return nil
}

func (l *Log) send() {
	if len(l.out) == 0 {
		return
	}
	l.called = true
	l.cfg.Send(l.out)
	if len(l.duplicates) > 0 && l.cfg.SendDuplicates != nil {
		l.cfg.SendDuplicates(l.duplicates)
	}
	clear(l.out)
	if cap(l.out) > maxRecycle {
		l.out = nil
	}
	clear(l.duplicates)
	l.out, l.duplicates = l.out[:0], l.duplicates[:0]
}

// feed passes the inbox to the core. It runs before Tick, so that after a stall the replica handles
// the waiting messages before it treats other replicas as silent.
func (l *Log) feed(in *inbox) error {
	if in.storeErr != nil {
		return in.storeErr
	}
	if in.stored {
		l.core.Stored()
	}
	if in.snapshotter != nil {
		if err := l.settleSnapshotter(in.snapshotter); err != nil {
			return err
		}
	}
	for _, a := range in.messages {
		l.core.step(a.message, a.duplicate)
	}
	for _, id := range in.unreachable {
		l.core.Unreachable(id)
	}
	for _, id := range in.lost { // after the messages
		l.core.Unreachable(id)
		l.core.PeerLost(id)
	}
	for _, r := range in.reports {
		l.core.SnapshotSent(r.to, r.term, r.ok)
	}
	if in.campaign {
		l.core.Campaign()
	}
	for _, t := range in.transfers {
		l.begin(t)
	}
	for _, r := range in.rounds {
		l.core.Confirm(r.term, r.round)
	}
	if in.change != nil {
		l.core.Change(in.change.term, in.change.Change)
	}
	start := 0
	for _, b := range in.bounds {
		l.core.Propose(b.term, in.batches[start:b.end])
		start = b.end
	}
	return nil
}
