package cluster

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// What Net.Ask returns instead of an answer. Every other error counts as silence.
var (
	// ErrRefused says that the machine is there and nobody listens at the address.
	ErrRefused = errors.New("connection refused: nobody listens there")
	// ErrForeign says that whoever listens at the address is not one of us: another cluster label,
	// another protocol, garbage.
	ErrForeign = errors.New("another cluster or another program listens there")
	// ErrOther says that another instance than the intended one answers at the address, and has
	// proved which.
	ErrOther = errors.New("another instance answers there")
)

// ForeignError is an ErrForeign of which the reason is known: another secret, say.
type ForeignError struct {
	Why string // for people, without the address
}

func (e *ForeignError) Error() string { return ErrForeign.Error() + ": " + e.Why }

// Is makes errors.Is(err, ErrForeign) true.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

// SilentError counts as silence, of which the reason is known: one side without a secret, say.
type SilentError struct {
	Why string // for people, without the address
}

func (e *SilentError) Error() string { return "no answer: " + e.Why }

// Net carries questions and gossip between instances. Ask carries those of package founding. All
// methods are called concurrently. An address is host:port.
type Net interface {
	// Ask puts a question to the instance to, or to any that is there if to is zero, and returns
	// its answer and the ID that it has proved, or one of the errors above, or any other error,
	// which counts as silence. It returns soon after ctx ends. The question belongs to the caller.
	Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) (answer []byte, from nodeid.ID, err error)
	// Consult puts a consultation to the instance to, or to any that is there if to is zero. Its
	// errors are those of Ask.
	Consult(ctx context.Context, addr string, to nodeid.ID, q Consultation) (Advice, error)
	// Probe returns nil if the instance to answers at the address. Its errors are those of Ask.
	Probe(ctx context.Context, addr string, to nodeid.ID) error
	// Its packets and streams are those of gossip.
	gossip.Net
}
