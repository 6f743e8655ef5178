package transport

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Instance names one life of one node, and can be claimed only with the private key of that life.
// The zero Instance names none.
type Instance = nodeid.ID

// Self is what this node says about itself on every connection, and proves as far as that is
// possible. It is one value, so that the ID that is claimed is always that of the key that signs.
type Self struct {
	Key   nodeid.Key // of this life; required
	Group uint64     // the group that it is bound to or a member of; zero means none yet
	Raft  uint64     // its raft ID in that group; zero means none
	Addr  string     // host:port under which others reach it; empty means that it cannot be reached
}

// Instance returns the ID of this life.
func (s *Self) Instance() Instance { return s.Key.ID() }

// Identity is what is known of a peer. Instance and Peer are proven. Group, Raft, Addr and Life are
// what the peer says of itself; of a peer that is not of the root tier Raft is zero and Addr is
// empty.
type Identity struct {
	Instance Instance
	Group    uint64 // zero means none
	Raft     uint64 // zero means none
	Addr     string // host:port; empty means that it cannot be reached
	Life     uint64 // counts the starts with one directory; 1 in memory

	// Peer is what the certificate of the connection allows: capability.Root without TLS. NotAfter
	// is zero here.
	Peer capability.Peer
}

// Peer says whom to send to. Addr is where to dial if there is no link yet; without it nothing is
// dialed.
type Peer struct {
	Instance Instance
	Addr     string
}

// Frame is what one turn of one node says to another. Renewals, Commands and Replies are opaque
// here; what several calls of [Port.Send] gave is concatenated in order, and never cut within what
// one call gave.
type Frame struct {
	Renewals []byte
	Commands []byte
	Replies  []byte
	Raft     []*raftpb.Message
	Retired  bool // the sender's voter or node has retired: treat it as gone
}

// empty reports whether f says nothing.
func (f *Frame) empty() bool {
	return len(f.Renewals)+len(f.Commands)+len(f.Replies)+len(f.Raft) == 0 && !f.Retired
}

// Handler is the room above. All methods are called from goroutines of the Port, several at once
// for different peers, and none may call [Port.Close]. Close waits for calls that are running;
// after it none comes.
type Handler interface {
	// Frame receives what a peer of our own group said. The calls for one peer come one after the
	// other, in the order sent, from the goroutine that reads the stream: it must not block,
	// because the whole peer waits. f and everything in it belong to the handler. Duplicates of
	// raft messages are the exception: they come in frames of their own, on another goroutine, in
	// no order with the frames of the link, and one may come in the moment of its Down.
	Frame(from Identity, f Frame)

	// Down says that the stream to a peer ended, after its last Frame, or that dialing it failed.
	// What was sent to it before and not answered may be lost. The next Frame of that instance, if
	// any, comes from a new stream. It must not block.
	Down(peer Identity, err error)

	// MaySendSnapshot says why the peer may not send the snapshot whose message, without data, is
	// m. Nil means that it may. It is asked before any data is gathered, and again when all has
	// come. The text of an error is shown to the sender. It must not block.
	MaySendSnapshot(from Identity, m *raftpb.Message) error

	// Snapshot takes a raft snapshot message that arrived whole. The text of an error is shown to
	// the sender. m belongs to the handler.
	Snapshot(from Identity, m *raftpb.Message) error
}

// Errors of this room. They are wrapped in errors that say more; test with errors.Is.
var (
	// ErrClosed says that the Port was closed.
	ErrClosed = errors.New("transport: closed")
	// ErrNoLink says that there is no stream to that instance and none is being dialed: no address
	// given, or the last dial failed a moment ago.
	ErrNoLink = errors.New("transport: no link")
	// ErrFull says that a bounded queue has no room: the peer reads more slowly than we write.
	// Nothing of the call was queued.
	ErrFull = errors.New("transport: queue full")
	// ErrTooLarge says that one call brought more than fits into one message.
	ErrTooLarge = errors.New("transport: too large for one message")
	// ErrRefused says that the connection was refused: the machine answered that nobody listens at
	// that address.
	ErrRefused = errors.New("transport: connection refused")
	// ErrForeign says that whoever answers is not one of us: another cluster label, another
	// protocol, or TLS that one side refuses.
	ErrForeign = errors.New("transport: foreign")
	// ErrVersion says that a node of our cluster answered that speaks another version of this
	// protocol.
	ErrVersion = errors.New("transport: other protocol version")
	// ErrOther says that another instance answered than the one asked for; [OtherError] says which.
	ErrOther = errors.New("transport: another instance")
	// ErrCopy says that another process with the same key is connected to that peer: one of the two
	// uses a copied directory.
	ErrCopy = errors.New("transport: another process has the same identity")
	// ErrSilent says that there was no answer: unreachable, broken off or too slow. It proves
	// nothing about who is there.
	ErrSilent = errors.New("transport: no answer")
	// ErrPlain says that the other side has no TLS where this one has. It is an ErrSilent too: the
	// instance may belong to this cluster, and its configuration be changed in a moment.
	ErrPlain = errors.New("transport: the other side has no TLS")
	// ErrSecured says that the other side has TLS where this one has none. It is an ErrSilent too.
	ErrSecured = errors.New("transport: the other side has TLS, and this one has none")
	// ErrGarbage says that a peer sent what no correct peer sends. Its stream is ended.
	ErrGarbage = errors.New("transport: garbage")
	// ErrGroup says that a peer of another group, or of none, sent what only members of one group
	// may say to each other.
	ErrGroup = errors.New("transport: another group")
)

// OtherError says that Addr is now the address of another instance. It is an ErrOther.
type OtherError struct {
	Addr     string
	Asked    Instance // the instance that was asked for
	Answered Instance // the one that answered
}

// Error names the address and both instances.
func (e *OtherError) Error() string {
	return fmt.Sprintf("transport: %s is instance %v, not %x", e.Addr, e.Answered, e.Asked)
}

// Is makes errors.Is(err, ErrOther) true.
func (e *OtherError) Is(target error) bool { return target == ErrOther }
