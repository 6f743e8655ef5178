package logtest

import (
	"testing"

	"github.com/mortise-lock/mortise/raftlog"
)

// TestStore runs the suite. newStore is called once for each case and returns a function that opens
// the store of that case. The store is empty at first. After a Close, open returns a store with
// everything that was saved.
func TestStore(t *testing.T, newStore func(t *testing.T) (open func() raftlog.Store)) {
	for _, tc := range cases() {
		t.Run(tc.name, func(t *testing.T) {
			s := &subject{t: t, open: newStore(t), why: tc.why}
			s.store = s.open()
			tc.run(s)
			if err := s.store.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
