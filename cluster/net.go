package cluster

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The errors of Net.Ask. Every other error counts as silence.
var (
	// ErrRefused is returned if the machine answers but nothing listens at the address.
	ErrRefused = errors.New("connection refused: nothing listens there")
	// ErrForeign is returned if the program that listens at the address is no instance of this
	// cluster: it has another cluster label, another protocol, or sends garbage.
	ErrForeign = errors.New("another cluster or another program listens there")
	// ErrOther is returned if another instance than the intended one answers at the address, and has
	// proved its ID.
	ErrOther = errors.New("another instance answers there")
)

// ForeignError is an ErrForeign with a known reason, for example another secret.
type ForeignError struct {
	Why string // for people, without the address
}

func (e *ForeignError) Error() string { return ErrForeign.Error() + ": " + e.Why }

// Is makes errors.Is(err, ErrForeign) true.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

// SilentError is a missing answer with a known reason, for example that one side has no secret.
type SilentError struct {
	Why string // for people, without the address
}

func (e *SilentError) Error() string { return "no answer: " + e.Why }

// Net carries questions and gossip between instances. All methods are safe for concurrent use. An
// address is host:port.
type Net interface {
	// Ask asks the instance to, or any instance at the address if to is zero, a question of package
	// founding. It returns the answer and the proven ID of the answering instance, or one of the
	// errors above. Any other error counts as silence. It returns soon after ctx ends. The question
	// belongs to the caller.
	Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) (answer []byte, from nodeid.ID, err error)
	// QueryStatus sends a status query to the instance to, or to any instance at the address if to is
	// zero. Its errors are those of Ask.
	QueryStatus(ctx context.Context, addr string, to nodeid.ID, q StatusQuery) (StatusReply, error)
	// Probe returns nil if the instance to answers at the address. Its errors are those of Ask.
	Probe(ctx context.Context, addr string, to nodeid.ID) error
	// Packets and streams of gossip.
	gossip.Net
}
