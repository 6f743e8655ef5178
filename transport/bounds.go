package transport

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Limits on what other instances can make this one hold, and for how long.
const (
	messageBytes = 128 << 10 // of one gRPC message: gathered before it can be checked
	pieceBytes   = 64 << 10  // of payload in one message, where something large is sent in pieces
	callsEach    = 64        // open calls on one connection

	questionBytes = 2 << 20          // of one question
	answerBytes   = 32 << 20         // of one answer
	questionsEach = 128              // questions of one instance that are being answered
	maxQuestions  = 2048             // questions of all instances that are being answered
	askTime       = 30 * time.Second // for a handler to answer

	heldEach = 4 << 20   // bytes of questions of one instance, being gathered or answered
	maxHeld  = 64 << 20  // bytes of questions of all instances
	toldEach = 32 << 20  // bytes of answers that wait for one instance, or come from one
	maxTold  = 128 << 20 // bytes of answers that wait for all, or come from all

	packetCallsEach = 4    // streams of packets of one instance
	maxPacketCalls  = 1024 // streams of packets of all instances
	byteCallsEach   = 4    // byte streams of one instance
	maxByteCalls    = 32   // byte streams of all instances

	snapshotsAtOnce = 2                // incoming, one from each instance
	chunkPatience   = 15 * time.Second // for the next chunk of a snapshot
	snapshotGrace   = 30 * time.Second // for the beginning of a snapshot; then slowest counts
)

// frameGrace is the time for the beginning of a large frame on a link; then the rate counts, see
// slowest.
const frameGrace = 10 * time.Second

// holdings is what other instances make this one hold, by the instance that has proved its key on
// the connection.
type holdings struct {
	arriving  arrivals
	questions *quota[nodeid.ID] // being answered
	held      *quota[nodeid.ID] // bytes of questions
	told      *quota[nodeid.ID] // bytes of answers being sent
	heard     *quota[nodeid.ID] // bytes of answers being received
	packets   *quota[nodeid.ID] // streams of packets
	conns     *quota[nodeid.ID] // byte streams
	snapshots *quota[nodeid.ID] // being received
	states    *quota[nodeid.ID] // bytes of snapshots being received
	frames    frames            // large frames on links
	owners    owners            // of connections for calls
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
