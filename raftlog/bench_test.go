package raftlog

import (
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// sink is an Applier that counts the applied bytes and wakes the benchmark.
type sink struct {
	mu      sync.Mutex // guards applied
	cond    sync.Cond
	applied int
	entries int
	led     chan struct{}
}

func (s *sink) Role(Role) {}
func (s *sink) Apply(index, term uint64, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied += len(b)
	s.entries++
	s.cond.Broadcast()
	return nil
}
func (s *sink) Leads(term uint64)                   { close(s.led) }
func (s *sink) Confirmed(term, round uint64)        {}
func (s *sink) Snapshot() (Capture, error)          { return s, nil }
func (s *sink) Step() bool                          { return true }
func (s *sink) AppendTo(b []byte, _ func()) []byte  { return append(b, make([]byte, 100_000)...) }
func (s *sink) Restore(i, t uint64, b []byte) error { return nil }
func (s *sink) Configured(Configuration)            {}
func (s *sink) TurnEnd()                            {}
func (s *sink) Retired(error)                       {}
func (s *sink) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.applied < n {
		s.cond.Wait()
	}
}

func startSink(b *testing.B) (*Log, *sink) {
	store := NewMemoryStore()
	if err := Found(store, 1, 1, testMembers(1), nil); err != nil {
		b.Fatal(err)
	}
	s := &sink{led: make(chan struct{})}
	s.cond.L = &s.mu
	l, err := Start(Config{Group: 1, ID: 1, Store: store, Applier: s, Logger: quiet,
		Send: func([]*raftpb.Message) {}, SendSnapshot: func(*raftpb.Message, func(bool)) {}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	l.Campaign()
	<-s.led
	return l, s
}

const benchBatch = 64

// Each batch costs two goroutine switches and one entry.
func BenchmarkProposeApply(b *testing.B) {
	l, s := startSink(b)
	batch := make([]byte, benchBatch)
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		l.Propose(2, batch)
		s.wait(n * benchBatch)
	}
}

func BenchmarkProposeApplyParallel(b *testing.B) {
	l, s := startSink(b)
	batch := make([]byte, benchBatch)
	var sent atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !l.Propose(2, batch) {
				b.Error("refused")
			}
			s.wait(int(sent.Add(1)) * benchBatch)
		}
	})
	b.ReportMetric(float64(b.N)/float64(s.entries), "batches/entry")
}
