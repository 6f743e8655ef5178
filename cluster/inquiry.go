package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	queryEvery = 100 * time.Millisecond // pause between attempts; up to half is added at random
	queryHops  = 3                      // maximum redirects in an attempt
)

// VoterStatus is the answer of a leader to a StatusQuery.
type VoterStatus = lead.VoterStatus

// StatusQuery asks for the state of a group's voters, and whether a replica may stop.
type StatusQuery struct {
	Group    uint64
	Instance nodeid.ID
	Raft     nodeid.ReplicaID
	At       uint64 // newest configuration of the asking instance
}

// StatusReply is the answer to a StatusQuery. An instance that does not lead names the leader.
type StatusReply struct {
	VoterStatus *VoterStatus // nil if the answering instance does not lead
	Leader      nodeid.ID    // the leader and its address; zero if unknown
	Addr        string
}

// Inquiry asks for the leader's VoterStatus, one question at a time, until a leader has answered or
// GiveUp is called. Caller, Own and Raft must be set before Inquire.
type Inquiry struct {
	Caller any    // opaque value for the owner
	Own    bool   // the question concerns the current replica of this instance
	Raft   uint64 // if Own is false, the replica that the question concerns

	lingers bool
	try     int
	hops    int // redirects left in this attempt
	asking  bool
	due     time.Duration // next attempt
	pause   time.Duration // between attempts
}

// Told is the answer of a leader to an inquiry.
type Told struct {
	Inquiry     *Inquiry
	VoterStatus VoterStatus
}

// begin begins an attempt. word is a random number.
func (q *Inquiry) begin(now time.Duration, word uint64) {
	q.pause, q.hops = queryEvery+time.Duration(word%uint64(queryEvery/2)), queryHops
	q.due = now + q.pause
}

// tried counts an attempt, and returns the number of earlier ones.
func (q *Inquiry) tried() int {
	q.try++
	return q.try - 1
}

func (q *Inquiry) asked() { q.asking = true }

func (q *Inquiry) hop() { q.hops-- }

// replied records that a question has ended, with an answer or without.
func (q *Inquiry) replied(now time.Duration) { q.asking, q.due = false, now+q.pause }

// inquiries are the inquiries that are under way.
type inquiries struct{ list []*Inquiry }

func (i *inquiries) add(q *Inquiry) { i.list = append(i.list, q) }

func (i *inquiries) goesOn(q *Inquiry) bool { return slices.Contains(i.list, q) }

// end ends an inquiry, and reports whether it was still under way.
func (i *inquiries) end(q *Inquiry) bool {
	at := slices.Index(i.list, q)
	if at >= 0 {
		i.list = slices.Delete(i.list, at, at+1)
	}
	return at >= 0
}

// endLingering ends the inquiry about a removed replica.
func (i *inquiries) endLingering() {
	i.list = slices.DeleteFunc(i.list, func(q *Inquiry) bool { return q.lingers })
}

// retire ends the inquiry about a removed replica that has stopped by itself.
func (i *inquiries) retire(raft uint64) {
	i.list = slices.DeleteFunc(i.list, func(q *Inquiry) bool { return q.lingers && q.Raft == raft })
}

// restart makes every inquiry begin anew in another incarnation.
func (i *inquiries) restart() {
	for _, q := range i.list {
		q.asking, q.due = false, 0
	}
}
