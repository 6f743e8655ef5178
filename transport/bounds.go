package transport

import (
	"time"

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

// frameGrace is the time for a large frame on a link before the rate `slowest` applies.
const frameGrace = 10 * time.Second

// holdings counts the resources that each instance uses on this one.
type holdings struct {
	arriving  arrivals
	questions *quota[nodeid.ID] // questions being answered
	held      *quota[nodeid.ID] // bytes of questions
	told      *quota[nodeid.ID] // bytes of answers being sent
	heard     *quota[nodeid.ID] // bytes of answers being received
	packets   *quota[nodeid.ID] // streams of packets
	conns     *quota[nodeid.ID] // byte streams
	snapshots *quota[nodeid.ID]
	states    *quota[nodeid.ID] // bytes of snapshots being received
	frames    frames
	owners    owners
}

func (h *holdings) init(c *Config) {
	*h = holdings{
		arriving:  arrivals{each: arrivalsEach, limit: maxArrivals, of: map[nodeid.ID]int{}},
		questions: newQuota[nodeid.ID](questionsEach, maxQuestions),
		held:      newQuota[nodeid.ID](heldEach, maxHeld),
		told:      newQuota[nodeid.ID](toldEach, maxTold),
		heard:     newQuota[nodeid.ID](toldEach, maxTold),
		packets:   newQuota[nodeid.ID](packetCallsEach, maxPacketCalls),
		conns:     newQuota[nodeid.ID](byteCallsEach, maxByteCalls),
		snapshots: newQuota[nodeid.ID](1, snapshotsAtOnce),
		states:    newQuota[nodeid.ID](c.SnapshotBytes, c.SnapshotBytes),
		frames:    frames{soft: framesSoft, hard: framesHard},
	}
}
