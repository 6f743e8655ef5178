package raftlog

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// turnRoundsMax bounds the outputs carried out in one turn: during a long replay messages must leave and ticks must pass.
const turnRoundsMax = 32

// place says whose code the owner is running, so that a panic can be named.
type place uint8

const (
	inRaft place = iota
	inApplier
	inStore
)

// patience is after how long the core is reminded of a batch that stands back, see Config.Patient. The reminder of one before may be under way then,
// and two are not: so it lasts up to twice as long. No much shorter timer is exact while a process is idle.
const patience = 2 * time.Millisecond

// own is the owner goroutine: it alone touches the core and calls the Applier, Send and, if the store is volatile, Save and Prepare. It is
// woken by the inbox and by one timer: the next tick, the end of patience, or the next step of a snapshot. A panic of anything that it calls ends the replica and nothing else.
func (l *Log) own() {
	var err error
	defer close(l.owner)
	defer func() { l.end(err) }()
	defer func() {
		if p := recover(); p != nil {
			err = l.panicked(p)
		} else if err == nil {
			err = l.panicked("the goroutine was ended from within")
		}
	}()
	timer := time.NewTimer(l.cfg.Tick)
	defer timer.Stop()
	set := true // the timer will fire
	for {
		fired := false
		select {
		case <-l.wake:
		case <-timer.C:
			fired, set = true, false
		}
		l.gather()
		in, nothing, closed := l.swap()
		if closed {
			err = ErrClosed
			return
		}
		paced := l.taking.steps()
		if err = l.turn(in, fired); err != nil {
			return
		}
		l.step(fired && nothing)
		switch steps := l.taking.steps(); { // whatever turns come, a timer that runs is not put off: ticks would be
		case steps && (fired || !paced):
			timer.Reset(pace)
			set = true
		case fired:
			if next := l.core.NextTick(); next != 0 {
				timer.Reset(max(time.Millisecond, next.Sub(l.cfg.Clock.Now())))
				set = true
			}
		case !set && l.core.NextTick() != 0: // the replica was at rest
			timer.Reset(l.cfg.Tick)
			set = true
		}
		if l.core.Reminds() {
			timer.Reset(patience)
			set = true
		}
	}
}

// turn handles all that has arrived and carries out what follows from it. The clock is read only if the timer says that a tick may have passed:
// under load there are many turns in one tick, and to read it costs as much as a command.
func (l *Log) turn(in *inbox, fired bool) error {
	taken := len(in.batches) + l.core.Queued()
	next, changed := l.core.NextTick(), in.change != nil || len(in.transfers) > 0
	if err := l.feed(in); err != nil {
		return err
	}
	in.empty()
	if fired {
		l.core.Tick(l.cfg.Clock.Now())
		l.core.Remind()
	}
	idle := false
	for range turnRoundsMax {
		out := l.core.Turn()
		if idle = out.Idle(); idle {
			break
		}
		if err := l.carry(&out); err != nil {
			return err
		}
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
	if changed || l.core.NextTick() != next {
		l.look()
	}
	l.publish(taken)
	return nil
}

// send hands over what the turn has to send.
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
	if cap(l.out) > recycleMax {
		l.out = nil
	}
	clear(l.duplicates)
	l.out, l.duplicates = l.out[:0], l.duplicates[:0]
}

// feed gives the core its inputs. Messages come before time, so that a replica that was stalled hears what waits before it counts
// the silence.
func (l *Log) feed(in *inbox) error {
	if in.storeErr != nil {
		return in.storeErr
	}
	if in.stored {
		l.core.Stored()
	}
	if in.aside != nil {
		if err := l.settleAside(in.aside); err != nil {
			return err
		}
	}
	for _, m := range in.messages {
		l.core.Step(m)
	}
	for _, id := range in.unreachable {
		l.core.Unreachable(id)
	}
	for _, id := range in.gone { // behind the messages
		l.core.Unreachable(id)
		l.core.Gone(id)
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

// carry carries out one output, in the order that its fields ask for. Messages are gathered until the end of the turn: one frame
// for each peer.
func (l *Log) carry(out *Output) error {
	if out.Failed != nil {
		return out.Failed
	}
	for i := range out.Events {
		if err := l.event(&out.Events[i]); err != nil {
			return err
		}
	}
	if out.Take != nil {
		if err := l.capture(*out.Take); err != nil {
			return err
		}
	}
	l.out = append(l.out, out.Messages...)
	l.duplicates = append(l.duplicates, out.Duplicates...)
	for _, m := range out.Snapshots {
		l.sendSnapshot(m)
	}
	if out.Prepare != nil {
		if err := l.prepare(out.Prepare); err != nil {
			return err
		}
	}
	if out.Save == nil {
		return nil
	}
	if !l.cfg.Store.Volatile() {
		l.saves <- *out.Save // never blocks: the core hands out one at a time
		return nil
	}
	l.where = inStore
	err := l.cfg.Store.Save(*out.Save)
	l.where = inRaft
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	l.core.Stored()
	return nil
}

// event is one call of the Applier.
func (l *Log) event(e *Event) error {
	l.where, l.called = inApplier, true // if the call panics it stays so
	a := l.cfg.Applier
	switch e.Kind {
	case RoleChanged:
		l.look() // first, so that whoever is called finds it changed
		a.Role(e.Role)
	case Applied:
		if err := a.Apply(e.Index, e.Term, e.Data); err != nil {
			return fmt.Errorf("%w: entry %d of term %d: %w", ErrBroken, e.Index, e.Term, err)
		}
	case LeadBegins:
		l.cfg.Logger.Info("leading", "term", e.Term)
		l.look()
		a.Leads(e.Term)
	case RoundDone:
		a.Confirmed(e.Term, e.Round)
	case Restored:
		l.taking.capture = nil // of a state that is no more
		if err := a.Restore(e.Index, e.Term, e.Data); err != nil {
			return fmt.Errorf("%w: restoring the snapshot at %d: %w", ErrBroken, e.Index, err)
		}
	case Configured:
		l.look()
		a.Configured(*e.Config)
	}
	l.where = inRaft
	return nil
}

// look takes a survey. Not in every turn: it costs memory, and what it says of the others changes with the ticks.
func (l *Log) look() {
	s := l.core.Survey()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.survey = s
}

// sendSnapshot starts the sending of a snapshot. Whatever becomes of it, the first answer is reported: raft waits for one.
func (l *Log) sendSnapshot(m *raftpb.Message) {
	to, term := m.GetTo(), m.GetTerm()
	l.called = true
	l.cfg.SendSnapshot(m, func(ok bool) {
		l.put(func(in *inbox) { in.reports = append(in.reports, snapshotReport{to, term, ok}) })
	})
}

// publish makes the status readable and gives back the room of the batches that have left the queue or were thrown away. taken is
// what this turn began with.
func (l *Log) publish(taken int) {
	st := l.core.Status()
	l.mu.Lock()
	defer l.mu.Unlock()
	st.Dropped = l.status.Dropped
	l.status = st
	l.queued -= taken - st.Queued
}

// panicked says what a panic on the owner goroutine means.
func (l *Log) panicked(p any) error {
	kind := ErrPanic
	switch l.where {
	case inApplier:
		kind = fmt.Errorf("%w: %w", ErrBroken, ErrPanic)
	case inStore:
		kind = fmt.Errorf("%w: %w", ErrStorage, ErrPanic)
	}
	return fmt.Errorf("%w: %w", kind, l.cause(p))
}
