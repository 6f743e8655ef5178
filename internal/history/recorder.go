package history

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

const (
	maxKey        = 1024            // bytes of a key that are recorded; no valid key is longer
	defaultBuffer = 16 << 20        // bytes: a busy disk stalls for seconds
	closeTimeout  = 5 * time.Second // how long Close waits for a writer that hangs
)

// RecorderConfig configures a Recorder.
type RecorderConfig struct {
	// Writer receives whole lines, from one goroutine. It is not closed. Required.
	Writer io.Writer
	// Node names the node. Required.
	Node string
	// Now is the clock of the history, in nanoseconds. It must be safe for concurrent use.
	// Required.
	Now func() int64
	// Buffer limits the bytes that wait for the writer. Events beyond it are dropped and counted.
	// Zero means 16 MiB.
	Buffer int
}

// Recorder writes the history of one node. It is safe for concurrent use. No call waits for the
// writer: the recorder's own goroutine writes, and Close ends it. A nil Recorder is switched off:
// its recording methods do nothing, Call returns 0, and Close returns nil.
type Recorder struct {
	config RecorderConfig
	wake   chan struct{} // one slot
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards the following; never held while writing
	buffer  []byte     // lines that wait
	op      uint64
	dropped uint64 // the number of dropped events
	told    uint64 // how many of those are recorded as dropped
	closed  bool
	err     error // of the writer; then nothing more is written
}

// NewRecorder returns a recorder and starts its goroutine.
func NewRecorder(c RecorderConfig) *Recorder {
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	r := &Recorder{config: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	r.buffer = append(r.buffer, '\n') // the last line of the file may have been cut off by a crash
	r.Record(Event{Kind: Header, Version: Version, Node: c.Node})
	go r.write()
	return r
}

// Record stamps an event with the time and writes it. It ignores the event's own At and Stream.
// After Close it does nothing: the history ends there, and a hanging call that returns later leaves
// no gap.
func (r *Recorder) Record(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.add(e)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// add needs mu.
func (r *Recorder) add(e Event) {
	if r.closed {
		return
	}
	if r.err != nil || len(r.buffer) >= r.config.Buffer {
		r.dropped++
		return
	}
	e.At = r.config.Now()
	if r.told < r.dropped {
		r.buffer = appendLine(r.buffer, Event{Kind: Dropped, At: e.At, Count: r.dropped - r.told})
		r.buffer = append(r.buffer, '\n')
		r.told = r.dropped
	}
	r.buffer = append(appendLine(r.buffer, e), '\n')
}

// Call records that a caller asks for something, and returns the number of the call. Of asked it
// uses Key, Keys, Permits, Of, Try and Resumes.
func (r *Recorder) Call(asked Event) (op uint64) {
	if r == nil {
		return 0
	}
	e := Event{Kind: Call, Key: short(asked.Key), Keys: asked.Keys, Permits: asked.Permits, Of: asked.Of,
		Try: asked.Try, Resumes: asked.Resumes}
	if slices.ContainsFunc(e.Keys, func(key string) bool { return len(key) > maxKey }) {
		e.Keys = slices.Clone(e.Keys)
		for i, key := range e.Keys {
			e.Keys[i] = short(key)
		}
	}
	r.mu.Lock()
	r.op++
	e.Op = r.op
	r.mu.Unlock()
	r.Record(e)
	return e.Op
}

// short cuts a key that is too long for any group: its call fails, but its line must not.
func short(key string) string { return key[:min(len(key), maxKey)] }

// Granted records that a call returned with the lock.
func (r *Recorder) Granted(op uint64, token lockfsm.Token) {
	r.Record(Event{Kind: Return, Op: op, Outcome: Granted, Token: token})
}

// Held records that a try was told that the lock is held with that token. Zero means that a waiter
// for several locks comes first.
func (r *Recorder) Held(op uint64, token lockfsm.Token) {
	r.Record(Event{Kind: Return, Op: op, Outcome: Held, Token: token})
}

// Failed records that a call returned with nothing. class is the kind of error in a word or two.
func (r *Recorder) Failed(op uint64, class string) {
	r.Record(Event{Kind: Return, Op: op, Outcome: Failed, Err: class})
}

// Unlock records that the holder of a granted call releases. It must be called before the release
// begins, and once a call.
func (r *Recorder) Unlock(op uint64) { r.Record(Event{Kind: Unlock, Op: op}) }

// Unlocked records that Unlock returned. An empty class means that the release is confirmed.
func (r *Recorder) Unlocked(op uint64, class string) {
	r.Record(Event{Kind: Unlocked, Op: op, Err: class})
}

// Lost records that a lock was lost. until is the first time, on the clock of the history, at which
// a question would have returned so.
func (r *Recorder) Lost(op uint64, until int64) { r.Record(Event{Kind: Lost, Op: op, Until: until}) }

// Now returns the time on the clock of the history.
func (r *Recorder) Now() int64 { return r.config.Now() }

// Dropped returns how many events were not written.
func (r *Recorder) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

func (r *Recorder) write() {
	defer close(r.done)
	var spare []byte
	for range r.wake {
		r.mu.Lock()
		lines, over := r.buffer, r.closed
		r.buffer = spare[:0]
		r.mu.Unlock()
		if len(lines) > 0 {
			if _, err := r.config.Writer.Write(lines); err != nil {
				r.mu.Lock()
				r.err = fmt.Errorf("history: write: %w", err)
				r.mu.Unlock()
				return
			}
		}
		spare = lines
		if over {
			return
		}
	}
}

// Close writes the waiting lines and ends the recorder. It returns an error of the writer, the
// number of dropped events, or that the writer hangs; such a history will not be judged right. It
// is idempotent, and takes at most 5 s.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	if !r.closed && r.told < r.dropped && r.err == nil {
		r.buffer = append(appendLine(r.buffer, Event{Kind: Dropped, At: r.config.Now(), Count: r.dropped - r.told}),
			'\n')
		r.told = r.dropped
	}
	r.closed = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	var hangs error
	select {
	case <-r.done:
	case <-limit.C:
		hangs = fmt.Errorf("history: the writer has not returned for %v", closeTimeout)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped > 0 {
		hangs = errors.Join(hangs, fmt.Errorf("history: %d events were dropped: the writer is too slow", r.dropped))
	}
	return errors.Join(r.err, hangs)
}
