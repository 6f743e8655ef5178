package lockfsm

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// Who puts a large snapshot together can be stopped at any moment: the runtime stops all goroutines now and then, and they wait for the last one.
func TestAppendToCanBeStopped(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("on one processor nobody waits for another one")
	}
	chunk, chunks := make([]byte, chunkBytes), make([][]byte, 512<<20/chunkBytes)
	for i := range chunks {
		chunks[i] = chunk
	}
	good, worst := 0, time.Duration(0)
	for range 8 { // some may meet a busy machine
		before := stopping()
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
		took := longest(before, stopping())
		if worst = max(worst, took); took < 10*time.Millisecond {
			good++
		}
		if good == 3 {
			return
		}
		runtime.GC()
	}
	t.Errorf("it took up to %v to stop the goroutine that puts 512 MB together", worst)
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
