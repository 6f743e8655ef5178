package lockfsm

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// Who puts a large snapshot together can be stopped at any moment: the runtime stops all goroutines
// now and then, and they wait for the last one.
func TestAppendToCanBeStopped(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("on one processor nobody waits for another one")
	}
	chunk, chunks := make([]byte, chunkBytes), make([][]byte, 256<<20/chunkBytes)
	for i := range chunks {
		chunks[i] = chunk
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // who asks for the figures would wait for it
	var worst, took time.Duration
	for range 3 { // one may meet a busy machine
		debug.FreeOSMemory() // new memory costs most
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
	t.Errorf("in the %v in which 256 MB are put together it took up to %v to stop that", took, worst)
}

// stopping says how long it took to stop all goroutines, each time so far.
func stopping() *metrics.Float64Histogram {
	samples := []metrics.Sample{{Name: "/sched/pauses/stopping/other:seconds"}}
	metrics.Read(samples)
	return samples[0].Value.Float64Histogram()
}

// longest is the longest time that is in now and not in before.
func longest(before, now *metrics.Float64Histogram) (d time.Duration) {
	for i, n := range now.Counts {
		if n > before.Counts[i] {
			d = time.Duration(now.Buckets[i] * float64(time.Second))
		}
	}
	return d
}
