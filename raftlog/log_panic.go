package raftlog

import (
	"fmt"
	"runtime/debug"
)

// phase names the code that the owner is running, to classify a panic.
type phase uint8

const (
	inRaft phase = iota
	inApplier
	inStore
)

func (l *Log) cause(p any) error {
	l.cfg.Logger.Error("the Store, the Applier or another callback of this replica panicked", "cause", p, "stack",
		string(debug.Stack()))
	if err, ok := p.(error); ok {
		return err
	}
	return fmt.Errorf("%v", p)
}

func (l *Log) panicked(p any) error {
	kind := ErrPanic
	switch l.where {
	case inApplier:
		kind = fmt.Errorf("%w: %w", ErrBroken, ErrPanic)
	case inStore:
		kind = fmt.Errorf("%w: %w", ErrStorage, ErrPanic)
	}
	return fmt.Errorf("%w: %w", kind, l.cause(p))
}
