package raftlog

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

type shell struct{ *Log }

// Send collects the messages until the end of the turn.
func (l shell) Send(messages, duplicates []*raftpb.Message) {
	l.out = append(l.out, messages...)
	l.duplicates = append(l.duplicates, duplicates...)
}

func (l shell) Save(b Batch) (done bool, err error) {
	if !l.cfg.Store.Volatile() {
		l.saves <- b // never blocks, because there is one Save at a time
		return false, nil
	}
	l.where = inStore
	err = l.cfg.Store.Save(b)
	l.where = inRaft
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return true, nil
}

func (l shell) Event(e *Event) error {
	l.publishSurvey() // before the call of the Applier, which may read the new Survey
	switch e.Kind {
	case LeadBegins:
		l.cfg.Logger.Info("this replica is now the leader", "term", e.Term)
	case Restored:
		l.taking.capture = nil // Restore replaces the state
	}
	l.where, l.called = inApplier, true // if the Applier panics, l.where stays inApplier
	err := Deliver(e, l.cfg.Applier)
	if err == nil {
		l.where = inRaft
	}
	return err
}

func (l shell) SendSnapshot(m *raftpb.Message) {
	to, term := m.GetTo(), m.GetTerm()
	l.called = true
	l.cfg.SendSnapshot(m, func(ok bool) {
		l.put(func(in *inbox) { in.reports = append(in.reports, snapshotReport{to, term, ok}) })
	})
}

func (l shell) Take(order Take) error {
	l.where, l.called = inApplier, true
	c, err := l.cfg.Applier.Snapshot()
	l.where = inRaft
	if err != nil {
		return fmt.Errorf("%w: taking a snapshot: %w", ErrBroken, err)
	}
	l.taking.order, l.taking.capture, l.taking.stepped = order, c, false
	return nil
}

func (l shell) Prepare(s *raftpb.Snapshot) (done bool, err error) {
	if !l.cfg.Store.Volatile() {
		l.give(task{snap: s})
		return false, nil
	}
	l.where = inStore
	err = l.cfg.Store.Prepare(l.ctx, s)
	l.where = inRaft
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return true, nil
}
