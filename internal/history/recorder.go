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
	maxKey        = 1024     // bytes; no valid key is longer
	defaultBuffer = 16 << 20 // bytes, enough for a disk that stalls for seconds
	closeTimeout  = 5 * time.Second
)

// RecorderConfig configures a Recorder.
type RecorderConfig struct {
	// Writer receives complete lines, from one goroutine. The Recorder does not close it. Required.
	Writer io.Writer
	// Node names the node. Required.
	Node string
	// Now returns the time of the history's clock in nanoseconds. It must be safe for concurrent
	// use. Required.
	Now func() int64
	// Buffer is the largest number of bytes that wait for the writer. Further events are dropped
	// and counted. Zero means 16 MiB.
	Buffer int
}

// Recorder writes the history of one node. It is safe for concurrent use. Only Close waits for the
// writer, which runs on a separate goroutine. With a nil Recorder the recording methods do nothing,
// Call returns 0, and Close returns nil.
type Recorder struct {
	config RecorderConfig
	wake   chan struct{}
	done   chan struct{}

	mu      sync.Mutex // guards the fields below; never held while writing
	buffer  []byte
	op      uint64
	dropped uint64
	told    uint64 // number of dropped events that the history already reports
	closed  bool
	err     error // error of the writer; after an error nothing more is written
}

// NewRecorder returns a Recorder and starts its goroutine.
func NewRecorder(c RecorderConfig) *Recorder {
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	r := &Recorder{config: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	r.buffer = append(r.buffer, '\n') // a crash may have left an incomplete last line in the file
	r.Record(Event{Kind: Header, Version: Version, Node: c.Node})
	go r.write()
	return r
}

// Record records an event with the present time. It ignores the fields At and Stream of e. After
// Close it does nothing.
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

// The caller of add must hold mu.
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

// Call records that a caller requests a lock, and returns the number of the call. It uses the
// fields Key, Keys, Permits, Of, Modes, Try, Resumes and Upgrades of asked.
func (r *Recorder) Call(asked Event) (op uint64) {
	if r == nil {
		return 0
	}
	e := Event{Kind: Call, Key: short(asked.Key), Keys: shortAll(asked.Keys), Permits: asked.Permits, Of: asked.Of,
		Modes: asked.Modes, Try: asked.Try, Resumes: asked.Resumes, Upgrades: asked.Upgrades}
	r.mu.Lock()
	r.op++
	e.Op = r.op
	r.mu.Unlock()
	r.Record(e)
	return e.Op
}

func short(key string) string { return key[:min(len(key), maxKey)] }

func shortAll(keys []string) []string {
	if !slices.ContainsFunc(keys, func(key string) bool { return len(key) > maxKey }) {
		return keys
	}
	keys = slices.Clone(keys)
	for i, key := range keys {
		keys[i] = short(key)
	}
	return keys
}

// Granted records that a call has got the lock with this token.
func (r *Recorder) Granted(op uint64, token lockfsm.Token) {
	r.Record(Event{Kind: Return, Op: op, Outcome: Granted, Token: token})
}

// Held records that a try failed because the lock is held with this token. Zero means that a waiter
// for several locks made it fail.
func (r *Recorder) Held(op uint64, token lockfsm.Token) {
	r.Record(Event{Kind: Return, Op: op, Outcome: Held, Token: token})
}

// Failed records that a call returned without the lock. class names the kind of error in one or two
// words.
func (r *Recorder) Failed(op uint64, class string) {
	r.Record(Event{Kind: Return, Op: op, Outcome: Failed, Err: class})
}

// Enter records that a request enters the lock of the call op again. It uses the fields Key, Keys,
// Permits, Of and Modes of asked. It must be called before a later downgrade or release of the lock
// is recorded.
func (r *Recorder) Enter(op uint64, asked Event) {
	if r == nil {
		return
	}
	r.Record(Event{Kind: Enter, Op: op, Key: short(asked.Key), Keys: shortAll(asked.Keys), Permits: asked.Permits,
		Of: asked.Of, Modes: asked.Modes})
}

// Downgrade records that the holder of an exclusive lock acts as a reader from now on.
func (r *Recorder) Downgrade(op uint64) { r.Record(Event{Kind: Downgrade, Op: op}) }

// Unlock records that the holder begins to release the lock of a call. It must be called once for
// each call, before the release begins.
func (r *Recorder) Unlock(op uint64) { r.Record(Event{Kind: Unlock, Op: op}) }

// Unlocked records the result of a release. An empty class means that the release was confirmed.
// Otherwise class names the kind of error.
func (r *Recorder) Unlocked(op uint64, class string) {
	r.Record(Event{Kind: Unlocked, Op: op, Err: class})
}

// Lost records that the lock of a call was lost. The parameter until is the time, on the history's
// clock, at which the holder could first detect the loss.
func (r *Recorder) Lost(op uint64, until int64) { r.Record(Event{Kind: Lost, Op: op, Until: until}) }

// Now returns the time on the clock of the history.
func (r *Recorder) Now() int64 { return r.config.Now() }

// Dropped returns the number of events that were not recorded.
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

// Close writes the waiting lines and ends the recorder. It returns an error if the writer failed or
// does not return, or if events were dropped. Close may be called more than once, and takes at most
// 5 s.
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
