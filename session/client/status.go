package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/stay"
)

// Phase is the phase of a client; see the package comment.
type Phase uint8

// The phases of a client, in order.
const (
	Seeking   Phase = iota // the client waits before it asks a target
	Opening                // the client has sent Open
	Attaching              // the client has sent Attach
	Attached               // the client is attached to the leader
)

func (p Phase) String() string {
	return [...]string{"seeking", "opening", "attaching", "attached"}[p&3]
}

// Status describes a client at one moment.
type Status struct {
	laterStatus
	Phase Phase
	// Asked is the instance to which the client sends its requests. Zero means none.
	Asked    nodeid.ID
	Leader   nodeid.Endpoint   // zero unless Phase is Attached
	Session  lockfsm.SessionID // zero means none
	TTL      time.Duration     // as granted by the group; zero without a session
	Renewed  clock.Time        // when the last acknowledged renewal was sent
	Deadline clock.Time        // all holds are lost at this time, unless a renewal is acknowledged
	Lease    LeaseState
	// Late is the longest time since Renewed by which the client's goroutine woke after its timer
	// was due: the process did not run.
	Late  time.Duration
	Ended SessionEnd // why the previous session has ended
	// Outdated is why the leader opens no session for this build; zero if it does.
	Outdated session.Outdated
	// GraceUntil is roughly when the grace of the group ends. Zero means that the grace is over, or
	// that the client is not attached.
	GraceUntil clock.Time
	Requests   int // waiting calls, held locks, and unconfirmed releases
	Waiting    int // calls that wait for an answer
	Held       int // locks that are granted and neither released nor lost; those in doubt count
	Kept       int // stays that no caller holds
	Stays      stay.Totals
}
