package transport

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Self is this node's identity on every connection. It is one value, so that the claimed ID is
// always that of the signing key.
type Self struct {
	Key   nodeid.Key       // of this incarnation; required
	Group uint64           // the group to which it is bound or belongs; zero means none yet
	Raft  nodeid.ReplicaID // in that group; zero means none
	Addr  string           // host:port where peers reach it; empty means that it cannot be reached
}

// Instance returns the ID of this incarnation.
func (s *Self) Instance() nodeid.ID { return s.Key.ID() }

// Identity is what is known about a peer. Instance and Peer are proven. Group, Raft, Addr and Life
// are what the peer claims. If the peer is not of the root tier, Raft is zero and Addr is empty.
type Identity struct {
	Instance nodeid.ID
	Group    uint64           // zero means none
	Raft     nodeid.ReplicaID // zero means none
	Addr     string           // host:port; empty means that it cannot be reached
	Life     uint64           // number of starts with its directory; 1 without one

	// Peer is what the certificate of the connection allows: capability.Root without TLS. NotAfter
	// is zero here.
	Peer capability.Peer
}

// Frame is what one turn of one node sends to another. Renewals, Commands and Replies are opaque
// here. The bytes of several calls of [Port.Send] are concatenated in order, and the bytes of one
// call are never split.
type Frame struct {
	Renewals []byte
	Commands []byte
	Replies  []byte
	Raft     []*raftpb.Message
	Retired  bool // the sender's voter or node has retired: treat it as lost

	// Duplicate is set on a received frame of raft messages that arrived beside the link, see
	// [Port.SendDuplicates]. Port.Send ignores it.
	Duplicate bool
}

func (f *Frame) empty() bool {
	return len(f.Renewals)+len(f.Commands)+len(f.Replies)+len(f.Raft) == 0 && !f.Retired
}

// Handler receives what peers send. Goroutines of the Port call its methods, several at once for
// different peers. None may call [Port.Close]. Close waits for running calls; after it there are
// none.
type Handler interface {
	// Frame receives what a peer of this node's own group sent. The calls for one peer are
	// sequential, in the order sent, on the goroutine that reads the stream. Frame must not block,
	// because everything from that peer waits. f and everything in it belong to the handler.
	// Duplicates are the exception: they come on another goroutine, in no order with the frames of
	// the link, and one may come at the moment of its Down.
	Frame(from Identity, f Frame)

	// Down reports that the stream to a peer ended, after its last Frame, or that dialing it
	// failed. Anything sent to it before and not answered may be lost. The next Frame of that
	// instance, if any, comes from a new stream. Down must not block.
	Down(peer Identity, err error)

	// MaySendSnapshot returns why the peer may not send the snapshot whose message, without data,
	// is m. Nil means that it may. It is called before any data is gathered, and again when all has
	// arrived. The sender sees the text of an error. It must not block.
	MaySendSnapshot(from Identity, m *raftpb.Message) error

	// Snapshot receives a raft snapshot message that arrived whole. The sender sees the text of an
	// error. m belongs to the handler.
	Snapshot(from Identity, m *raftpb.Message) error
}

// Errors of this package, to be matched with errors.Is.
var (
	// ErrClosed means that the Port was closed.
	ErrClosed = errors.New("transport: closed")
	// ErrNoLink means that there is no stream to that instance and none is being dialed: no address
	// was given, or the last dial failed a moment ago.
	ErrNoLink = errors.New("transport: not connected")
	// ErrFull means that a limit of this port or of the peer is reached, such as that of a queue
	// whose peer reads more slowly than this node writes. Nothing of the call was queued.
	ErrFull = errors.New("transport: the queue to the peer is full")
	// ErrTooLarge means that one call has more than fits into one message.
	ErrTooLarge = errors.New("transport: the message is too large")
	// ErrRefused means that the machine answered that no process listens at that address.
	ErrRefused = errors.New("transport: connection refused")
	// ErrForeign means that the process at the address is not an instance of this cluster: it has
	// another cluster label or another protocol, or one side refuses the other's TLS.
	ErrForeign = errors.New("transport: not an instance of this cluster")
	// ErrVersion means that a node of this cluster answered with another version of this protocol.
	ErrVersion = errors.New("transport: the peer speaks another version of the protocol")
	// ErrOther means that another instance answered than the intended one. [OtherError] names both.
	ErrOther = errors.New("transport: another instance answered than the intended one")
	// ErrCopy means that another process with the same key is connected to that peer: one of the
	// two uses a copied directory.
	ErrCopy = errors.New("transport: another process has the same identity")
	// ErrSilent means that there was no answer: the peer was unreachable, broke off or was too
	// slow. It proves nothing about the process at the address.
	ErrSilent = errors.New("transport: no answer")
	// ErrPlain means that only this side has TLS. It comes with ErrSilent: the instance may belong
	// to this cluster, and its configuration may change at any moment.
	ErrPlain = errors.New("transport: the other side has no TLS")
	// ErrSecured means that only the other side has TLS. It comes with ErrSilent.
	ErrSecured = errors.New("transport: the other side has TLS, and this one has none")
	// ErrGarbage means that a peer sent what no correct peer sends. Its stream is ended.
	ErrGarbage = errors.New("transport: malformed message")
	// ErrGroup means that a peer of another group, or of none, sent what only members of one group
	// may send each other.
	ErrGroup = errors.New("transport: the peer is in another group or in none")
)

// OtherError means that Addr is now the address of another instance. It matches ErrOther with
// errors.Is.
type OtherError struct {
	Addr     string
	Asked    nodeid.ID // the intended instance
	Answered nodeid.ID // the instance that answered
}

func (e *OtherError) Error() string {
	return fmt.Sprintf("transport: %s is instance %v, not %x", e.Addr, e.Answered, e.Asked)
}

// Is makes errors.Is(err, ErrOther) true.
func (e *OtherError) Is(target error) bool { return target == ErrOther }
