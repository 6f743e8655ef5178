package lockfsm

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// TestAppendToCanBeStopped checks that AppendTo can be preempted while it assembles a large
// snapshot. Otherwise it would delay every stop of the world.
func TestAppendToCanBeStopped(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one processor runs one goroutine at a time")
	}
	chunk, chunks := make([]byte, chunkBytes), make([][]byte, 256<<20/chunkBytes)
	for i := range chunks {
		chunks[i] = chunk
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a garbage collection would delay metrics.Read
	var worst, took time.Duration
	for range 10 { // other load may disturb a run
		debug.FreeOSMemory() // AppendTo takes longest if it needs new memory
		before, began := stopping(), time.Now()
		done := make(chan int)
		go func() { done <- len((&Capture{chunks: chunks}).AppendTo(nil, func() {})) }()
		var m runtime.MemStats
		for n := 0; n == 0; {
			select {
			case n = <-done:
			default:
				runtime.ReadMemStats(&m) // stops all goroutines
				time.Sleep(100 * time.Microsecond)
			}
		}
		worst, took = longest(before, stopping()), time.Since(began)
		t.Logf("of %v, up to %v to stop it", took, worst)
		if worst < took/4 {
			return
		}
	}
	t.Errorf("assembling 256 MB took %v, and stopping it up to %v", took, worst)
}

func stopping() *metrics.Float64Histogram {
	samples := []metrics.Sample{{Name: "/sched/pauses/stopping/other:seconds"}}
	metrics.Read(samples)
	return samples[0].Value.Float64Histogram()
}

func longest(before, now *metrics.Float64Histogram) (d time.Duration) {
	for i, n := range now.Counts {
		if n > before.Counts[i] {
			d = time.Duration(now.Buckets[i] * float64(time.Second))
		}
	}
	return d
}
