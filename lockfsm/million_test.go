package lockfsm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// crowdOf is a machine with many sessions, each of which holds the same number of locks with keys
// of 16 bytes.
type crowdOf struct {
	*world
	sessions []SessionID
	next     []Number
	locks    int // acquired so far
	held     []int
	buffer   []byte
}

func newCrowd(t testing.TB, sessions, locks int) *crowdOf {
	c := &crowdOf{world: newWorld(t)}
	c.do(Command{Kind: Adopt, SessionBytes: 1 << 40, GroupBytes: 1 << 40}, Done)
	for i := range sessions {
		n := binary.LittleEndian.AppendUint32(nil, uint32(i+1))
		nonce := Nonce(append(n, make([]byte, 12)...))
		id := c.do(Command{Kind: Open, Nonce: nonce}, Done).Session
		c.sessions, c.next = append(c.sessions, id), append(c.next, 1)
	}
	for range locks {
		c.acquire()
	}
	return c
}

func (c *crowdOf) apply(command Command) Code {
	c.buffer = command.Append(c.buffer[:0])
	b, _, _ := Next(c.buffer)
	return c.m.Apply(1, 1, b).Code
}

func (c *crowdOf) acquire() {
	i := c.locks % len(c.sessions)
	if c.apply(Command{Kind: Acquire, Session: c.sessions[i], Number: c.next[i],
		Key: fmt.Sprintf("orders/%09d", c.locks)}) != Granted {
		c.t.Fatal("not granted")
	}
	c.next[i]++
	c.locks++
}

func (c *crowdOf) exchange(r *rand.Rand) {
	at := r.IntN(len(c.held))
	k := c.held[at]
	i := k % len(c.sessions)
	if c.apply(Command{Kind: Release, Session: c.sessions[i], Number: Number(1 + k/len(c.sessions))}) != Done {
		c.t.Fatal("not released")
	}
	c.held[at] = c.locks
	c.acquire()
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

const million = 1_000_000

// BenchmarkMillionLocks measures the memory, the commands, the captures and a Restore of a machine
// with a million held locks.
func BenchmarkMillionLocks(b *testing.B) {
	if testing.Short() {
		b.Skip("its setup takes seconds")
	}
	before := heap()
	c := newCrowd(b, 1000, million)
	held := heap() - before
	b.Run("hold", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(held)/million, "B/lock")
		b.ReportMetric(0, "ns/op")
	})
	for k := range million {
		c.held = append(c.held, k)
	}
	b.Run("exchange", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 7))
		for b.Loop() {
			c.exchange(r)
		}
	})
	var snapshot []byte
	for _, pairs := range []int{0, 256} {
		b.Run(fmt.Sprintf("capture/pairs=%d", pairs), func(b *testing.B) {
			snapshot = c.film(b, pairs)
		})
	}
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(int64(len(snapshot)))
		for b.Loop() {
			if _, err := Restore(snapshot); err != nil {
				b.Fatal(err)
			}
		}
	})
	runtime.KeepAlive(c)
}

// BenchmarkEndOfASession measures one command that ends a session with many locks.
func BenchmarkEndOfASession(b *testing.B) {
	for _, locks := range []int{1000, 100_000, million} {
		b.Run(fmt.Sprintf("locks=%d", locks), func(b *testing.B) {
			if locks == million && testing.Short() {
				b.Skip("its setup takes seconds")
			}
			for range b.N {
				b.StopTimer()
				c := newCrowd(b, 1, locks)
				b.StartTimer()
				if c.apply(Command{Kind: Close, Session: c.sessions[0]}) != Done {
					b.Fatal("not ended")
				}
			}
		})
	}
}

// film takes captures. After each step of a capture it applies a number of pairs, each a release
// and an acquire. It reports the times of the steps and of the pairs.
func (c *crowdOf) film(b *testing.B, pairs int) []byte {
	var steps, longest, between, longestBetween, behind time.Duration
	var snapshot []byte
	r := rand.New(rand.NewPCG(1, 6))
	timed := func(sum, longest *time.Duration, f func()) {
		begun := time.Now()
		f()
		took := time.Since(begun)
		*sum += took
		*longest = max(*longest, took)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		var capture *Capture
		timed(&steps, &longest, func() { capture = c.m.Capture() })
		for done := false; !done; {
			timed(&steps, &longest, func() { done = capture.Step(256) })
			timed(&between, &longestBetween, func() {
				for range pairs {
					c.exchange(r)
				}
			})
		}
		timed(&behind, new(time.Duration), func() { snapshot = capture.AppendTo(nil, func() {}) })
	}
	b.ReportMetric(float64(steps.Milliseconds())/float64(n), "step-ms")
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	b.ReportMetric(float64(behind.Milliseconds())/float64(n), "append-ms")
	if pairs > 0 {
		b.ReportMetric(float64(longestBetween.Microseconds()), "longest-pairs-µs")
	}
	return snapshot
}
