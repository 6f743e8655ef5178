package cluster

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The errors of Net.Ask. Every other error counts as silence.
var (
	// ErrRefused is returned if the machine responds but nothing listens at the address.
	ErrRefused = errors.New("connection refused: nothing listens there")
	// ErrForeign is returned if the program at the address is not an instance of this cluster: it
	// has another label or another protocol, or it sends garbage.
	ErrForeign = errors.New("another cluster or another program listens there")
	// ErrOther is returned if another instance answers at the address and has proved its ID.
	ErrOther = errors.New("another instance answers there")
)

// OtherError is an ErrOther with the instance that has proved its ID.
type OtherError struct{ Answered nodeid.ID }

func (e *OtherError) Error() string { return ErrOther.Error() + ": " + e.Answered.String() }

// Is makes errors.Is(err, ErrOther) true.
func (e *OtherError) Is(target error) bool { return target == ErrOther }

// ForeignError is an ErrForeign with a known reason, for example a different secret.
type ForeignError struct {
	Why string // the reason as text; it does not contain the address
}

func (e *ForeignError) Error() string { return ErrForeign.Error() + ": " + e.Why }

// Is makes errors.Is(err, ErrForeign) true.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

// SilentError counts as silence and has a known reason, for example a missing secret on one side.
type SilentError struct {
	Why string // the reason as text; it does not contain the address
}

func (e *SilentError) Error() string { return "no answer: " + e.Why }

// Net carries questions and gossip between instances. All methods are safe for concurrent use. An
// address is host:port.
type Net interface {
	// Ask sends a question of package founding to addr. The parameter to is the ID of the instance
	// that must answer; zero means any instance. Ask returns the answer and the proven ID of the
	// answering instance, or one of the errors above. Ask returns soon after ctx ends. Ask must not
	// modify or keep the question.
	Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) (answer []byte, from nodeid.ID, err error)
	// QueryStatus sends a status query. For addr, to and the errors, see Ask.
	QueryStatus(ctx context.Context, addr string, to nodeid.ID, q StatusQuery) (StatusReply, error)
	// Probe returns nil if an instance answers, and otherwise an error. For addr, to and the
	// errors, see Ask.
	Probe(ctx context.Context, addr string, to nodeid.ID) error
	gossip.Net
}
