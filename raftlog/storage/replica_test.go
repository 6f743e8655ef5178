package storage

import (
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

func TestReplicaOnDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	term := uint64(1)
	for life := range 5 {
		d := mustDir(t, path)
		store, err := d.Log(7, 1)
		if err != nil {
			t.Fatal(err)
		}
		if life == 0 {
			if err := raftlog.Found(store, 7, 1, []raftlog.Member{{ID: 1}}, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		s := &sink{led: make(chan struct{})}
		s.cond.L = &s.mu
		l, err := raftlog.Start(raftlog.Config{Group: 7, ID: 1, Store: store, Applier: s,
			Logger: slog.New(slog.DiscardHandler), SnapshotBytes: 20_000, KeepEntries: -1,
			Send: func([]*raftpb.Message) {}, SendSnapshot: func(*raftpb.Message, func(bool)) {}})
		if err != nil {
			t.Fatal(err)
		}
		l.Campaign()
		<-s.led
		if now := l.Status().Term; now <= term {
			t.Fatalf("life %d leads in term %d after term %d", life, now, term)
		} else {
			term = now
		}
		s.mu.Lock()
		before := s.applied // bytes applied since the snapshot
		s.mu.Unlock()
		for i := range 60 {
			l.Propose(term, make([]byte, 1000))
			s.wait(before + (i+1)*1000)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if life%2 == 0 {
			closeDir(t, d)
		} else if err := d.lock.Close(); err != nil { // a kill releases the lock in the same way
			t.Fatal(err)
		} else if err := d.meta.close(); err != nil {
			t.Fatal(err)
		}
	}
}

type sink struct {
	mu      sync.Mutex // guards applied
	cond    sync.Cond
	applied int
	led     chan struct{}
}

func (s *sink) Role(raftlog.Role) {}
func (s *sink) Apply(index, term uint64, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied += len(b)
	s.cond.Broadcast()
	return nil
}
func (s *sink) Leads(uint64)                         { close(s.led) }
func (s *sink) Confirmed(uint64, uint64)             {}
func (s *sink) Snapshot() (raftlog.Capture, error)   { return s, nil }
func (s *sink) Step() bool                           { return true }
func (s *sink) AppendTo(b []byte, _ func()) []byte   { return append(b, make([]byte, 100_000)...) }
func (s *sink) Restore(uint64, uint64, []byte) error { return nil }
func (s *sink) Configured(raftlog.Configuration)     {}
func (s *sink) TurnEnd()                             {}
func (s *sink) Retired(error)                        {}

func (s *sink) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.applied < n {
		s.cond.Wait()
	}
}
