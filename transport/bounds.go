package transport

import (
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Limits on the memory, the calls and the time that other instances can use on this instance.
const (
	messageBytes = 128 << 10 // gRPC receives a message whole before any check
	pieceBytes   = 64 << 10  // payload of one message of large data
	callsEach    = 64        // calls that are open at once on one connection

	questionBytes = 2 << 20          // bytes
	answerBytes   = 32 << 20         // bytes
	questionsEach = 128              // questions being answered for one instance
	maxQuestions  = 2048             // questions being answered for all instances
	askTime       = 30 * time.Second // time limit for a handler to answer

	heldEach = 4 << 20   // bytes of one instance's questions, while they arrive or are answered
	maxHeld  = 64 << 20  // like heldEach, but for all instances together
	toldEach = 32 << 20  // bytes of answers being sent to one instance, or arriving from it
	maxTold  = 128 << 20 // like toldEach, but for all instances together

	packetCallsEach = 4
	maxPacketCalls  = 1024
	byteCallsEach   = 4
	maxByteCalls    = 32

	snapshotsAtOnce = 2                // snapshots being received; at most one from each instance
	chunkPatience   = 15 * time.Second // longest wait for the next chunk of a snapshot
	snapshotGrace   = 30 * time.Second // time for a snapshot before the rate `slowest` applies
)

// Limits on the connections of the peers with one derived secret.
const (
	connsOfSecret = 16   // the divisor of Config.Conns
	meetingBurst  = 4096 // connections that may be opened at once, as after a failover
	meetingEvery  = time.Second / 64
)

// holdings counts the resources that each instance uses on this one.
type holdings struct {
	arriving  arrivals
	accepted  *fair.Places // connections of peers with a derived secret
	questions *fair.Places // questions being answered
	held      *fair.Places // bytes of questions
	told      *fair.Places // bytes of answers being sent
	heard     *fair.Places // bytes of answers being received
	packets   *fair.Places // streams of packets
	conns     *fair.Places // byte streams
	snapshots *fair.Places
	states    *fair.Places // bytes of snapshots being received
	meetings  *fair.Rates  // connections that the peers with a derived secret open
	unpaid    *fair.Rates  // unpaid frames of the peers with a derived secret
	frames    frames
	owners    owners
}

func (h *holdings) init(c *Config) {
	*h = holdings{
		arriving: newArrivals(),
		accepted: fair.New(fair.Limits{Each: c.Conns, Secret: max(1, c.Conns/connsOfSecret),
			Derived: c.Conns - c.Conns/4, All: c.Conns}),
		questions: fair.New(fair.Share(questionsEach, maxQuestions)),
		held:      fair.New(fair.Share(heldEach, maxHeld)),
		told:      fair.New(fair.Share(toldEach, maxTold)),
		heard:     fair.New(fair.Share(toldEach, maxTold)),
		packets:   fair.New(fair.Share(packetCallsEach, maxPacketCalls)),
		conns:     fair.New(fair.Share(byteCallsEach, maxByteCalls)),
		snapshots: fair.New(fair.Share(1, snapshotsAtOnce)),
		states:    fair.New(fair.Share(c.SnapshotBytes, c.SnapshotBytes)),
		meetings:  fair.NewRates(fair.Rate{Every: meetingEvery, Burst: meetingBurst}),
		unpaid:    newSecretRates(),
		frames:    frames{soft: framesSoft, hard: framesHard},
	}
}

// claimant returns the identity by which limits are divided.
func claimant(instance nodeid.ID, peer capability.Peer) fair.Identity {
	who := fair.Identity{Instance: instance, Secret: peer.Capability.Text()}
	if peer.Tier != capability.Root && who.Secret == "" {
		who.Secret = peer.Tier.String() // the peer has proved nothing
	}
	return who
}

func (i *Identity) claimant() fair.Identity { return claimant(i.Instance, i.Peer) }
