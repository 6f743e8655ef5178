package raftlog

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// maxTurnRounds bounds the Outputs that are carried out in one turn, so that messages are sent and
// ticks are counted while a long log is applied.
const maxTurnRounds = 32

// Shell carries out the Outputs of a Core. An error retires the replica.
type Shell interface {
	// Event must call Deliver.
	Event(*Event) error
	Take(Take) error
	// Send sends the messages at the end of the turn, in one frame for each receiver.
	Send(messages, duplicates []*raftpb.Message)
	SendSnapshot(*raftpb.Message)
	// Prepare makes a snapshot durable, concurrently with Saves. If done is false the owner calls
	// Core.Prepared later.
	Prepare(*raftpb.Snapshot) (done bool, err error)
	// Save makes a batch durable. If done is false the owner calls Core.Stored later.
	Save(Batch) (done bool, err error)
}

// Carry carries out Outputs until one is idle, but at most maxTurnRounds of them. It reports
// whether the last Output was idle.
func (c *Core) Carry(s Shell) (idle bool, err error) {
	for range maxTurnRounds {
		out := c.Turn()
		if out.Idle() {
			return true, nil
		}
		if err := c.carry(&out, s); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (c *Core) carry(out *Output, s Shell) error {
	if out.Failed != nil {
		return out.Failed
	}
	for i := range out.Events {
		if err := s.Event(&out.Events[i]); err != nil {
			return err
		}
		c.noteDigest(&out.Events[i])
	}
	if out.Take != nil {
		if err := s.Take(*out.Take); err != nil {
			return err
		}
	}
	c.nameDigests(out.Messages)
	s.Send(out.Messages, out.Duplicates)
	for _, m := range out.Snapshots {
		s.SendSnapshot(m)
	}
	if out.Prepare != nil {
		done, err := s.Prepare(out.Prepare)
		if err != nil {
			return err
		}
		if done {
			c.Prepared()
		}
	}
	if out.Save == nil {
		return nil
	}
	done, err := s.Save(*out.Save)
	if done && err == nil {
		c.Stored()
	}
	return err
}

// Deliver calls the Applier's method for an event. Its errors wrap ErrBroken.
func Deliver(e *Event, a Applier) error {
	switch e.Kind {
	case RoleChanged:
		a.Role(e.Role)
	case Applied:
		if err := a.Apply(e.Index, e.Term, e.Data); err != nil {
			return fmt.Errorf("%w: entry %d of term %d: %w", ErrBroken, e.Index, e.Term, err)
		}
	case LeadBegins:
		a.Leads(e.Term)
	case RoundDone:
		a.Confirmed(e.Term, e.Round)
	case Restored:
		if err := a.Restore(e.Index, e.Term, e.Data); err != nil {
			return fmt.Errorf("%w: restoring the snapshot at %d: %w", ErrBroken, e.Index, err)
		}
	case Configured:
		a.Configured(*e.Config)
	}
	return nil
}

// EachReplica calls send once for each receiver, with the messages for that receiver in order. The
// slices use the memory of frame, so send must not keep them. EachReplica returns the memory for
// the next call.
func EachReplica(messages, frame []*raftpb.Message, send func(to uint64, mine []*raftpb.Message)) []*raftpb.Message {
	for i, first := range messages {
		to := first.GetTo()
		if slices.ContainsFunc(messages[:i], func(m *raftpb.Message) bool { return m.GetTo() == to }) {
			continue
		}
		frame = frame[:0]
		for _, m := range messages[i:] {
			if m.GetTo() == to {
				frame = append(frame, m)
			}
		}
		send(to, frame)
		clear(frame)
	}
	return frame
}
