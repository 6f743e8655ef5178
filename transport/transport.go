package transport

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// Instance names one life of one node: random, never used again. Zero is nobody.
type Instance uint64

// Identity is what a node says about itself at the start of a stream and whenever it changes.
type Identity struct {
	Cluster  string   // the label of the cluster: nodes with different labels never talk
	Instance Instance // this life of the node; never zero
	Group    uint64   // the group that it is bound to or a member of; zero: none yet
	Raft     uint64   // its raft ID in that group; zero: none
	Addr     string   // host:port under which others reach it
}

// Peer says whom to send to. Addr is where to dial if there is no link yet; without it nothing is dialed.
type Peer struct {
	Instance Instance
	Addr     string
}

// Frame is what one turn of one node says to another. Renewals, Commands and Replies are opaque here; what several calls of [Port.Send]
// gave is concatenated in order, and never cut within what one call gave.
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

// Handler is the room above. All methods are called from goroutines of the Port, several at once for different peers, and none may
// call [Port.Close]. Close waits for calls that are running; after it none comes.
type Handler interface {
	// Frame receives what a peer of our own group said. The calls for one peer come one after the other, in the order sent, from the
	// goroutine that reads the stream: it must not block, because the whole peer waits. f and everything in it belong to the handler.
	Frame(from Identity, f Frame)

	// Down says that the stream to a peer ended, after its last Frame, or that dialing it failed. What was sent to it before and not
	// answered may be lost. The next Frame of that instance, if any, comes from a new stream. It must not block.
	Down(peer Identity, err error)

	// Ask answers a question. from is the address that the asker says it is reachable at. It may block until ctx ends. An error is
	// not shown to the asker, who learns only that there was no answer. The question belongs to the handler, the answer to the Port.
	Ask(ctx context.Context, from string, question []byte) ([]byte, error)

	// MaySendSnapshot says why the peer may not send the snapshot whose message, without data, is
	// m. Nil means that it may. It is asked before any data is gathered, and again when all has
	// come. The text of an error is shown to the sender. It must not block.
	MaySendSnapshot(from Identity, m *raftpb.Message) error

	// Snapshot takes a raft snapshot message that arrived whole. The text of an error is shown to the sender. m belongs to the handler.
	Snapshot(from Identity, m *raftpb.Message) error
}

// Errors of this room. They are wrapped in errors that say more; test with errors.Is.
var (
	// ErrClosed says that the Port was closed.
	ErrClosed = errors.New("transport: closed")
	// ErrNoLink says that there is no stream to that instance and none is being dialed: no address given, or the last dial failed a moment ago.
	ErrNoLink = errors.New("transport: no link")
	// ErrFull says that a bounded queue has no room: the peer reads more slowly than we write. Nothing of the call was queued.
	ErrFull = errors.New("transport: queue full")
	// ErrTooLarge says that one call brought more than fits into one message.
	ErrTooLarge = errors.New("transport: too large for one message")
	// ErrRefused says that the connection was refused: the machine answered that nobody listens at that address.
	ErrRefused = errors.New("transport: connection refused")
	// ErrForeign says that whoever answers is not one of us: another cluster label, another protocol, or TLS that one side refuses.
	ErrForeign = errors.New("transport: foreign")
	// ErrVersion says that a node of our cluster answered that speaks another version of this protocol.
	ErrVersion = errors.New("transport: other protocol version")
	// ErrOther says that another instance answered than the one asked for; [OtherError] says which.
	ErrOther = errors.New("transport: another instance")
	// ErrSilent says that there was no answer: unreachable, broken off or too slow. It proves nothing about who is there.
	ErrSilent = errors.New("transport: no answer")
	// ErrGarbage says that a peer sent what no correct peer sends. Its stream is ended.
	ErrGarbage = errors.New("transport: garbage")
	// ErrGroup says that a peer of another group, or of none, sent what only members of one group may say to each other.
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
	return fmt.Sprintf("transport: %s is instance %x, not %x", e.Addr, uint64(e.Answered), uint64(e.Asked))
}

// Is makes errors.Is(err, ErrOther) true.
func (e *OtherError) Is(target error) bool { return target == ErrOther }
