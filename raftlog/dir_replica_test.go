package raftlog

import (
	"path/filepath"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// TestReplicaOnDir restarts a lone voter on its directory again and again: its log goes on where it was, through snapshots and the ends of segments.
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
			if err := Found(store, 7, 1, testMembers(1), make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		s := &sink{led: make(chan struct{})}
		s.cond.L = &s.mu
		l, err := Start(Config{Group: 7, ID: 1, Store: store, Applier: s, Logger: quiet, SnapshotBytes: 20_000, KeepEntries: -1,
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
		before := s.applied // since the snapshot
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
		} else if err := d.lock.Close(); err != nil { // as a kill does
			t.Fatal(err)
		} else if err := d.meta.close(); err != nil {
			t.Fatal(err)
		}
	}
}
