package transport

import "time"

// Bounds of what other instances can make this one hold and for how long. Those that a user may
// want to change are in Config.
const (
	messageBytes = 128 << 10 // of one gRPC message in any call: what is gathered before it can be judged
	pieceBytes   = 64 << 10  // of the payload in one message, when something large travels in pieces
	callsEach    = 64        // open calls on one connection

	questionBytes = 2 << 20          // of one question
	answerBytes   = 32 << 20         // of one answer
	questionsEach = 128              // questions of one instance that are being answered
	questionsMost = 2048             // questions of all instances that are being answered
	askTime       = 30 * time.Second // for a handler to answer

	heldEach = 4 << 20   // bytes of questions of one instance that are being gathered or answered
	heldMost = 64 << 20  // bytes of questions of all instances
	toldEach = 32 << 20  // bytes of answers that wait for one instance, or come from one
	toldMost = 128 << 20 // bytes of answers that wait for all, or come from all

	packetCallsEach = 4    // streams of packets of one instance
	packetCallsMost = 1024 // streams of packets of all instances
	byteCallsEach   = 4    // byte streams of one instance
	byteCallsMost   = 32   // byte streams of all instances

	snapshotsAtOnce = 2                // snapshots that come in, one from each instance
	chunkPatience   = 15 * time.Second // for the next chunk of a snapshot
	snapshotGrace   = 30 * time.Second // for the beginning of a snapshot; behind it counts its rate, see slowest
)

// frameGrace is for the beginning of a large frame on a link; behind it counts its rate, see
// slowest.
const frameGrace = 10 * time.Second

// holdings is what other instances make this one hold just now. An Instance is the one that has
// proved its key on the connection.
type holdings struct {
	arriving  arrivals
	questions *quota[Instance] // being answered
	held      *quota[Instance] // bytes of questions
	told      *quota[Instance] // bytes of answers that go out
	heard     *quota[Instance] // bytes of answers that come in
	packets   *quota[Instance] // streams of packets
	conns     *quota[Instance] // byte streams
	snapshots *quota[Instance] // that come in
	states    *quota[Instance] // bytes of snapshots that come in
	frames    frames           // large ones, on links
	owners    owners           // of connections for calls
}

func (h *holdings) init(c *Config) {
	*h = holdings{
		arriving:  arrivals{each: arrivalsEach, most: arrivalsMost, of: map[Instance]int{}},
		questions: newQuota[Instance](questionsEach, questionsMost),
		held:      newQuota[Instance](heldEach, heldMost),
		told:      newQuota[Instance](toldEach, toldMost),
		heard:     newQuota[Instance](toldEach, toldMost),
		packets:   newQuota[Instance](packetCallsEach, packetCallsMost),
		conns:     newQuota[Instance](byteCallsEach, byteCallsMost),
		snapshots: newQuota[Instance](1, snapshotsAtOnce),
		states:    newQuota[Instance](c.SnapshotBytes, c.SnapshotBytes),
		frames:    frames{soft: framesSoft, hard: framesHard},
	}
}
