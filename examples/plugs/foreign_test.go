package main

import (
	"context"
	"errors"
	"testing"

	"example.com/reports"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

// shelf is a reports.Store.
type shelf struct{ tokens []locker.Token }

func (s *shelf) Put(ctx context.Context, _, _ string, token locker.Token) error {
	s.tokens = append(s.tokens, token)
	return ctx.Err()
}

// A project that does not know mortise (examples/foreign) locks with the node of the service, and
// knows its errors.
func TestAForeignProjectLocksWithTheNode(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close() }()
	kept := new(shelf)
	w := reports.Writer{Locks: node, Store: kept}
	if err := errors.Join(w.Write(t.Context(), "daily", "a"), w.Write(t.Context(), "daily", "b")); err != nil {
		t.Fatal(err)
	}
	if len(kept.tokens) != 2 || kept.tokens[0] >= kept.tokens[1] {
		t.Errorf("the tokens are %d", kept.tokens)
	}
	lock, err := node.Lock(t.Context(), "reports/daily")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock(t.Context()) }() // the node is closed before
	w.Locks = locker.Requests(node, func(key string) mortise.Request { return mortise.Request{Key: key, Try: true} })
	if err := w.Write(t.Context(), "daily", "c"); !errors.Is(err, locker.ErrHeld) {
		t.Errorf("a held lock: %v", err)
	}
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	w.Locks = node
	if err := w.Write(t.Context(), "daily", "d"); !errors.Is(err, locker.ErrClosed) || errors.Is(err, reports.ErrBusy) {
		t.Errorf("a closed node: %v", err)
	}
}
