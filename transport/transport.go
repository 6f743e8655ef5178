package transport

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Self is this node's identity on every connection. It is a single value, so that the claimed ID
// and the signing key always match.
type Self struct {
	Key   nodeid.Key       // required
	Group uint64           // group to which it is bound or belongs; zero means none yet
	Raft  nodeid.ReplicaID // raft ID in that group; zero means none
	Addr  string           // host:port where peers reach it; empty means that it cannot be reached
}

// Instance returns the ID of this incarnation.
func (s *Self) Instance() nodeid.ID { return s.Key.ID() }

func (s *Self) standing() *wire.Standing {
	return &wire.Standing{Group: s.Group, Raft: s.Raft, Addr: s.Addr}
}

// Identity describes a peer. The fields Instance and Peer are proven. Group, Raft, Addr and Life
// are claims of the peer. If the peer is not of the root tier, Raft is zero and Addr is empty.
type Identity struct {
	Instance nodeid.ID
	Group    uint64           // zero means none
	Raft     nodeid.ReplicaID // zero means none
	Addr     string           // host:port; empty means that no process can dial it
	Life     uint64           // how often it has started with its directory; 1 without a directory

	// Peer holds the rights from the certificate, or capability.Root without TLS. Its NotAfter is
	// always zero.
	Peer capability.Peer
}

// Frame contains what one node sends to another node in one turn. Renewals, Commands and Replies
// are opaque to this package. The bytes of several calls of [Port.Send] are concatenated in order,
// and the bytes of one call are never split.
type Frame struct {
	Renewals []byte
	Commands []byte
	Replies  []byte
	Raft     []*raftpb.Message
	Retired  bool // the sender's voter or node has retired, and must be treated as lost

	// Duplicate is set on a received frame of raft messages that did not arrive on the link; see
	// [Port.SendDuplicates]. Port.Send ignores the field.
	Duplicate bool
}

func (f *Frame) empty() bool {
	return len(f.Renewals)+len(f.Commands)+len(f.Replies)+len(f.Raft) == 0 && !f.Retired
}

// Handler receives what peers send. Goroutines of the Port call its methods, concurrently for
// different peers. No method may call [Port.Close], which waits for running calls. No method is
// called after Close returns.
type Handler interface {
	// Frame receives data from a peer of this node's group. The calls for one peer are sequential,
	// in the order sent, on the goroutine that reads the stream. Frame must not block, because it
	// delays all other data from that peer. The handler owns f and everything in it. Duplicates are
	// the exception: another goroutine delivers them, in any order relative to other frames, and
	// possibly while Down is called for the peer.
	Frame(from Identity, f Frame)

	// Down reports that dialing a peer failed, or that the stream to the peer has ended and its
	// last Frame was delivered. Data that was sent on the stream may be lost if it was not
	// answered. Any further Frame of the instance arrives on a new stream. Down must not block.
	Down(peer Identity, err error)

	// MaySendSnapshot returns nil if the peer may send the snapshot of message m, and otherwise an
	// error, whose text is sent to the peer. The data of the snapshot is not in m. The method is
	// called before any data arrives, and when all data has arrived. It must not block.
	MaySendSnapshot(from Identity, m *raftpb.Message) error

	// Snapshot receives a complete raft snapshot message. The text of an error is sent to the peer.
	// The handler owns m.
	Snapshot(from Identity, m *raftpb.Message) error
}

// Errors of this package, to be matched with errors.Is.
var (
	// ErrClosed means that the Port was closed.
	ErrClosed = errors.New("transport: closed")
	// ErrNoLink means that there is no stream to the instance and none is being dialed, because no
	// address was given or the last dial failed recently.
	ErrNoLink = errors.New("transport: not connected")
	// ErrFull means that a limit of this port or of the peer is reached, for example because the
	// peer reads slowly. No data of the failed call was queued.
	ErrFull = errors.New("transport: the queue to the peer is full")
	// ErrTooLarge means that the data of one call does not fit into one message.
	ErrTooLarge = errors.New("transport: the message is too large")
	// ErrRefused means that the machine reported that no process listens at the address.
	ErrRefused = errors.New("transport: connection refused")
	// ErrForeign means that the process at the address is not an instance of this cluster: its
	// label or its protocol differs, or one side refuses the other's TLS certificate.
	ErrForeign = errors.New("transport: not an instance of this cluster")
	// ErrRules means that a node of this cluster has other lock rules under the same version.
	ErrRules = errors.New("transport: the peer has other lock rules")
	// ErrVersion means that a node of this cluster answered with another version of this protocol.
	ErrVersion = errors.New("transport: the peer speaks another version of the protocol")
	// ErrOther means that an instance other than the intended one answered. [OtherError] names
	// both.
	ErrOther = errors.New("transport: another instance answered instead of the intended one")
	// ErrCopy means that another process with this node's key is connected to the peer. One of the
	// two processes uses a copied directory.
	ErrCopy = errors.New("transport: another process has the same identity")
	// ErrSilent means that there was no answer: the peer was unreachable, closed the connection or
	// was too slow. The error proves nothing about the process at the address.
	ErrSilent = errors.New("transport: no answer")
	// ErrPlain means that only this side has TLS. The error also matches ErrSilent, because the
	// configuration of the other side may change soon.
	ErrPlain = errors.New("transport: the other side has no TLS")
	// ErrSecured means that only the other side has TLS. The error also matches ErrSilent.
	ErrSecured = errors.New("transport: the other side has TLS, and this one has none")
	// ErrGarbage means that a peer sent data that no correct peer sends. Its stream is ended.
	ErrGarbage = errors.New("transport: malformed message")
	// ErrGroup means that a peer of another group, or without a group, sent data that only members
	// of the same group may send.
	ErrGroup = errors.New("transport: the peer is in another group or in none")
)

// OtherError means that an instance other than the intended one uses the address Addr. It matches
// ErrOther with errors.Is.
type OtherError struct {
	Addr     string
	Asked    nodeid.ID
	Answered nodeid.ID
}

func (e *OtherError) Error() string {
	return fmt.Sprintf("transport: %s is instance %v, not %x", e.Addr, e.Answered, e.Asked)
}

// Is makes errors.Is(err, ErrOther) true.
func (e *OtherError) Is(target error) bool { return target == ErrOther }
