package raftlog_test

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/logtest"
	"github.com/mortise-lock/mortise/raftlog"
)

func TestMemoryStore(t *testing.T) {
	logtest.TestStore(t, func(*testing.T) func() raftlog.Store {
		s := raftlog.NewMemoryStore()
		return func() raftlog.Store { return s }
	})
}
