//go:build nextrules

package client

import (
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file simulates a client with version 2 of the rules. With each renewal it sends a Mark, and
// it adds a Note to its requests. If the group does not have them, it goes on without a Note until
// a Mark succeeds, and loses nothing.

const laterRules = 2

type later struct{ laterStatus }

type laterStatus struct {
	Marks, MarksRefused, Notes, NotesRefused uint64
	old                                      bool // the group has an older version
}

func (later) sends(id lockfsm.SessionID, epoch lockfsm.Epoch) []lockfsm.Command {
	return []lockfsm.Command{{Kind: lockfsm.Mark, Rules: laterRules, Session: id, Epoch: epoch}}
}

func (l *later) adds(c *lockfsm.Command) {
	if l.old || c.Kind != lockfsm.Acquire || c.Sticky || c.Upgrades {
		return
	}
	l.Notes++
	c.Rules, c.Note = laterRules, "a note"
}

func (l *later) hears(r *session.Reply) bool {
	if r.Number != 0 || r.Code != lockfsm.Done {
		return false
	}
	l.Marks++
	l.old = false
	return true
}

func (l *later) refused(r *session.Reply, live bool) (known, without bool) {
	switch {
	case r.Rules >= laterRules:
		return false, false
	case r.Command == lockfsm.Mark:
		l.MarksRefused++
	case r.Command == lockfsm.Acquire && live:
		l.Notes--
		l.NotesRefused++
		without = true
	}
	l.old = true
	return true, without
}

func (l *later) status() laterStatus { return l.laterStatus }
