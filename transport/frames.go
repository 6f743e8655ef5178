package transport

import (
	"bufio"
	"container/list"
	"sync"
	"time"
)

const (
	framesSoft = 128 << 20   // bytes; above this sum, slow links are closed
	framesHard = 256 << 20   // bytes; above this sum, the link with the oldest frame is closed
	frameSlow  = time.Second // an arriving large frame is slow after this time
	maxSpares  = 64          // number of buffers kept, each of at most keptBytes
	maxRaft    = 16 << 10    // raft messages in a frame; decoded, they are up to 100 times as large
	maxEntries = 256 << 10
	maxStrange = 64 << 10 // bytes of those raft messages of a frame that only protobuf can decode

	// size of the read buffer while many bytes arrive; otherwise it has restBytes
	readBytes = 16 << 10
	keptBytes = 256 << 10 // largest buffer that is kept, in bytes
)

// frames holds the large frames that are arriving on all links. If their sum is too large, the
// link with the oldest frame is ended. The type is safe for concurrent use.
type frames struct {
	soft, hard int // framesSoft and framesHard, except in tests

	mu     sync.Mutex // guards all below
	list   list.List  // of *frame, the oldest first
	sum    int
	spares [][]byte

	readers sync.Pool // of *bufio.Reader with readBytes
}

type frame struct {
	size  int
	began time.Time
	kill  func() // ends its link
}

// enter registers a frame of the given size. The function kill must end the link of the frame. It
// is called if other frames displace the frame, or if the caller does not call leave in time.
func (f *frames) enter(size int, kill func()) (leave func()) {
	now := time.Now()
	f.mu.Lock()
	place := f.list.PushBack(&frame{size, now, kill})
	f.sum += size
	var given []func()
	for e := f.list.Front(); e != nil && e != place && f.sum > f.soft; e = f.list.Front() {
		oldest := e.Value.(*frame)
		if f.sum <= f.hard && now.Sub(oldest.began) < frameSlow {
			break
		}
		f.remove(e)
		given = append(given, oldest.kill)
	}
	f.mu.Unlock()
	for _, kill := range given {
		kill()
	}
	within := allowance(frameGrace, uint64(size))
	timer := time.AfterFunc(within, kill)
	return func() {
		timer.Stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.remove(place)
	}
}

func (f *frames) remove(e *list.Element) {
	before := f.list.Len()
	if f.list.Remove(e); f.list.Len() < before {
		f.sum -= e.Value.(*frame).size
	}
}

func (f *frames) buffer() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.spares) - 1
	if last < 0 {
		return nil
	}
	b := f.spares[last]
	f.spares[last], f.spares = nil, f.spares[:last]
	return b[:0]
}

// reader returns a reader with a buffer of readBytes. The caller must call Reset on it.
func (f *frames) reader() *bufio.Reader {
	if r, ok := f.readers.Get().(*bufio.Reader); ok {
		return r
	}
	return bufio.NewReaderSize(nil, readBytes)
}

func (f *frames) giveReader(r *bufio.Reader) {
	r.Reset(nil)
	f.readers.Put(r)
}

func (f *frames) giveBack(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(b) > 0 && cap(b) <= keptBytes && len(f.spares) < maxSpares {
		f.spares = append(f.spares, b)
	}
}

func (f *frames) total() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sum
}

// frameGrace is the time for a large frame on a link before the rate `slowest` applies.
const frameGrace = 10 * time.Second
