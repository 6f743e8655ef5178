package raftlog

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// report adds the median and the 99th percentile of what was measured.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkDirSave is one durable append of 256 bytes.
func BenchmarkDirSave(b *testing.B) { benchSave(b, nil) }

// BenchmarkDirSaveBesideASnapshot is the same while snapshots of 100 MB are written, one after the other.
func BenchmarkDirSaveBesideASnapshot(b *testing.B) {
	benchSave(b, func(ctx context.Context, s Store) {
		snap := testSnapshot(1, 1, 100<<20)
		for s.Prepare(ctx, snap) == nil {
		}
	})
}

func benchSave(b *testing.B, beside func(context.Context, Store)) {
	d, err := OpenDir(DirConfig{Path: filepath.Join(b.TempDir(), "d")})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s, err := d.Log(7, 1)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Save(Batch{Identity: &Identity{7, 1}, HardState: testHard(1, 0, 1), Snapshot: testSnapshot(1, 1, 10)}); err != nil {
		b.Fatal(err)
	}
	if beside != nil {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(b.Context())
		wg.Go(func() { beside(ctx, s) })
		defer wg.Wait()
		defer cancel()
	}
	var took []time.Duration
	b.ReportAllocs()
	for index := uint64(2); b.Loop(); index++ {
		batch := Batch{HardState: testHard(1, 0, index-1), Entries: testEntries(index, 1, 1, 256)}
		start := time.Now()
		if err := s.Save(batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

// BenchmarkPlainSync is what the disk asks for: 256 bytes written into a reserved file, and synced.
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
