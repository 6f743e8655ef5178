//go:build !nextrules

package client

import (
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file and later_nextrules.go contain what a client of the next version of the rules adds.

// later is the state that the next version adds to a client, and laterStatus the part of it that a
// Status has.
type (
	later       struct{}
	laterStatus struct{}
)

// sends returns the commands of the next version for a frame with a renewal.
func (later) sends(lockfsm.SessionID, lockfsm.Epoch) []lockfsm.Command { return nil }

// adds adds the fields of the next version to an Acquire.
func (later) adds(*lockfsm.Command) {}

// hears reports whether r answers a command of the next version.
func (later) hears(*session.Reply) bool { return false }

// refused reports whether the group does not have the command of r, which is of the next version.
// If live is true, the request of r is live. If without is true, it must be sent again without the
// fields of the next version.
func (later) refused(r *session.Reply, live bool) (known, without bool) { return false, false }

func (later) status() laterStatus { return laterStatus{} }
