package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Phase is the progress of a client towards an attachment.
type Phase uint8

// The phases of a client, in order.
const (
	Seeking   Phase = iota // waits before it asks a target
	Opening                // has asked a target for a session
	Attaching              // has asked a target for an attachment of its session
	Attached               // attached to the leader
)

func (p Phase) String() string {
	return [...]string{"seeking", "opening", "attaching", "attached"}[p&3]
}

// Status describes a client at one moment.
type Status struct {
	Phase Phase
	// Asked is the instance that the client asks or is attached to. Zero means none.
	Asked    nodeid.ID
	Leader   nodeid.Endpoint   // zero unless Phase is Attached
	Session  lockfsm.SessionID // zero means none
	TTL      time.Duration     // as granted by the group; zero without a session
	Renewed  clock.Time        // when the last acknowledged renewal was sent
	Deadline clock.Time        // when every hold is lost unless a renewal is acknowledged before
	Lease    LeaseState
	Ended    SessionEnd // why the previous session ended
	// GraceUntil is roughly when the grace of the group ends; until then nothing is granted. Zero
	// means that it is over, or that the client is not attached.
	GraceUntil clock.Time
	Requests   int // waiting, held, and unconfirmed releases
	Waiting    int // calls that wait for an answer
	Held       int // granted and neither released nor lost
}
