package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Phase says how far a client is on its way to the leader.
type Phase uint8

// The phases of a client, in the order of the way.
const (
	Seeking   Phase = iota // has nobody to ask at the moment
	Opening                // has asked a target for a session
	Attaching              // has asked a target for an attachment of its session
	Attached               // talks to the leader
)

// String returns the phase in lower case.
func (p Phase) String() string {
	return [...]string{"seeking", "opening", "attaching", "attached"}[p&3]
}

// Status describes a client at one moment, for people, programs and leak tests.
type Status struct {
	Phase Phase
	// the instance that it is attached to, or asks now because a voter has named it or it is one;
	// zero: none
	Asked    session.Peer
	Leader   session.Target    // the leader it is attached to; zero unless Phase is Attached
	Session  lockfsm.SessionID // 0: none
	TTL      time.Duration     // as granted by the group; 0 without a session
	Renewed  clock.Time        // when the last acknowledged renewal was sent
	Deadline clock.Time        // when every hold is lost unless a renewal is acknowledged before
	Lease    LeaseState
	Ended    SessionEnd // why the session before is over, if there is or was another
	// GraceUntil is about when the grace of the group ends; until then requests queue and nothing
	// is granted. Zero if it is over, or not attached.
	GraceUntil clock.Time
	Requests   int // everything unfinished: waiting, held, and releases that are not confirmed
	Waiting    int // calls that wait for an answer
	Held       int // granted and neither released nor lost
}
