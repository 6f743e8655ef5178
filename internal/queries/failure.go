package queries

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Failed is the error of a question that was answered with a failure. If a right is missing, it
// wraps a *session.NotAllowedError. If a kept lock has reserved the token, it wraps
// [replica.ErrKept], and if a limit of questions is reached, [replica.ErrBusy].
type Failed struct {
	Kind   query.Failure_Kind
	text   string
	denied *session.NotAllowedError
}

func (f *Failed) Error() string { return f.text }

func (f *Failed) Unwrap() error {
	switch {
	case f.denied != nil:
		return f.denied
	case f.Kind == query.Failure_KEPT:
		return replica.ErrKept
	case f.Kind == query.Failure_BUSY:
		return replica.ErrBusy
	}
	return nil
}

// Conflict returns the failure of a Put whose revision differs from the revision of the data.
func Conflict(err error) *Failed { return &Failed{Kind: query.Failure_CONFLICT, text: err.Error()} }

func failure(err error) error {
	f := &query.Failure{Text: strings.ToValidUTF8(err.Error(), "?")}
	if failed, ok := errors.AsType[*Failed](err); ok {
		f.Kind = failed.Kind
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errStarting) {
		f.Kind = query.Failure_NOT_READY
	}
	if errors.Is(err, replica.ErrBusy) {
		f.Kind = query.Failure_BUSY
	}
	if errors.Is(err, replica.ErrKept) {
		f.Kind = query.Failure_KEPT
	}
	if denied, ok := errors.AsType[*session.NotAllowedError](err); ok {
		f.Kind, f.Denied = query.Failure_DENIED, DeniedOf(denied)
	}
	body, err := proto.Marshal(f)
	if err != nil {
		return err
	}
	return &transport.Failure{Body: body}
}

// DeniedOf returns the message that describes a missing right.
func DeniedOf(e *session.NotAllowedError) *query.Denied {
	return &query.Denied{Verb: e.Verb, Key: []byte(e.Key), For: e.For}
}

// Method is a method of the generated client C.
type Method[C, Q, A any] func(client C, ctx context.Context, q *Q, _ ...grpc.CallOption) (*A, error)

// Ask sends a question once. If the answer is a failure, the error is a [*Failed]. For other errors
// see [transport.Remote.Invoke].
func Ask[C, Q, A any](ctx context.Context, client C, method Method[C, Q, A], q *Q) (*A, error) {
	a, err := method(client, ctx, q)
	if err == nil {
		return a, nil
	}
	failed, ok := errors.AsType[*transport.Failure](err)
	if !ok {
		return nil, err
	}
	var f query.Failure
	if err := proto.Unmarshal(failed.Body, &f); err != nil {
		return nil, fmt.Errorf("%w: the error that it returned cannot be decoded: %w", transport.ErrVersion, err)
	}
	answered := &Failed{Kind: f.Kind, text: f.Text}
	if d := f.Denied; d != nil {
		answered.denied = &session.NotAllowedError{Verb: d.Verb, Key: string(d.Key), For: d.For}
	}
	return nil, answered
}
