package storage

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkDirSave(b *testing.B) { benchSave(b, nil) }

func BenchmarkDirSaveBesideASnapshot(b *testing.B) {
	data := testData(1, 1, 100<<20)
	benchSave(b, func(ctx context.Context, s raftlog.Store, index uint64, name chan<- *raftpb.Snapshot) bool {
		snap := testSnapshot(index, 1, 0)
		snap.Data = data
		if s.Prepare(ctx, snap) != nil {
			return false
		}
		for range 2 { // the second round saves the prepared snapshot
			select {
			case name <- snap:
			case <-ctx.Done():
				return false
			}
		}
		return true
	})
}

func benchSave(b *testing.B, beside func(ctx context.Context, s raftlog.Store, index uint64,
	name chan<- *raftpb.Snapshot) bool) {
	d, err := Open(Config{Path: filepath.Join(b.TempDir(), "d")})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s, err := d.Log(7, 1)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Save(raftlog.Batch{Identity: &raftlog.Identity{Group: 7, ID: 1}, HardState: testHard(1, 0, 1),
		Snapshot: testSnapshot(1, 1, 10)}); err != nil {
		b.Fatal(err)
	}
	name := make(chan *raftpb.Snapshot)
	var last atomic.Uint64
	last.Store(2) // set before the first snapshot begins
	if beside != nil {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(b.Context())
		wg.Go(func() {
			for beside(ctx, s, last.Load(), name) {
			}
		})
		defer wg.Wait()
		defer cancel()
	}
	var took []time.Duration
	b.ReportAllocs()
	for index := uint64(2); b.Loop(); index++ {
		batch := raftlog.Batch{HardState: testHard(1, 0, index-1), Entries: testEntries(index, 1, 1, 256)}
		select {
		case batch.Snapshot = <-name:
			batch.Prepared = true
		default:
		}
		start := time.Now()
		if err := s.Save(batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		if last.Store(index); batch.Prepared {
			<-name
		}
	}
	report(b, took)
}

// BenchmarkPlainSync measures the disk alone.
func BenchmarkPlainSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := allocate(f, 8<<20); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	data := testData(1, 1, 256)
	var took []time.Duration
	for at := int64(0); b.Loop(); at = (at + 256) % (8 << 20) {
		start := time.Now()
		if _, err := f.WriteAt(data, at); err != nil {
			b.Fatal(err)
		}
		if err := syncData(f); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}
