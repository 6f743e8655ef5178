package transport

import (
	"sync"

	"go.etcd.io/raft/v3/raftpb"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	frameBytes = 1 << 20  // a frame is filled up to this size; a larger piece is sent alone
	slackBytes = 64 << 10 // kept free in a message for the other fields
)

// queue holds the data that waits to be sent on one link. Only the link's sender goroutine calls
// next.
type queue struct {
	config *Config
	wake   chan struct{} // capacity 1; signals that data waits or that the queue has ended
	frame  wire.Frame    // reused by next
	arena  []byte        // encoded raft messages, reused by next
	ends   []int         // where each message in arena ends; reused by next
	habit  habit

	mu        sync.Mutex // guards all below
	closed    bool       // push fails
	ending    bool       // the sender goroutine must stop once the queue is empty
	kinds     [3]batch   // renewals, commands, replies
	bytes     int        // number of bytes in kinds
	raft      []*raftpb.Message
	raftBytes int               // estimated size of raft
	lent      []*raftpb.Message // last result of next, which the caller still reads
	spare     []*raftpb.Message
	turn      int // selects the kind that follows the renewals in the next frame
	retired   bool
	standing  *wire.Standing
	refusal   *wire.Refusal
}

func newQueue(c *Config) *queue { return &queue{config: c, wake: make(chan struct{}, 1)} }

func (q *queue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// push queues f, or returns an error and queues nothing. It returns how many raft messages it
// dropped because the queue is full.
func (q *queue) push(f *Frame) (dropped int, err error) {
	pieces := [3][]byte{f.Renewals, f.Commands, f.Replies}
	size := 0
	for _, piece := range pieces {
		if len(piece) > q.config.MessageBytes-slackBytes {
			return 0, ErrTooLarge
		}
		size += len(piece)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, ErrNoLink
	}
	if size > 0 && q.bytes+size > q.config.QueueBytes {
		return 0, ErrFull
	}
	q.bytes += size
	for i, piece := range pieces {
		q.kinds[i].add(piece)
	}
	for _, m := range f.Raft {
		n := raftSize(m)
		if len(q.raft) >= q.config.RaftMessages || q.raftBytes+n > q.config.RaftBytes ||
			n > q.config.MessageBytes-slackBytes {
			dropped++
			continue
		}
		q.raft = append(q.raft, m)
		q.raftBytes += n
	}
	q.retired = q.retired || f.Retired
	q.notify()
	return dropped, nil
}

// raftSize estimates the encoded size of m. The exact size would cost as much as encoding.
func raftSize(m *raftpb.Message) int {
	n := 128 + len(m.Context) + len(m.GetSnapshot().GetData())
	for _, e := range m.Entries {
		n += 32 + len(e.Data)
	}
	return n
}

func (q *queue) say(s *wire.Standing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.standing = s
	q.notify()
}

// end makes the sender goroutine stop after it has sent all queued data and then the refusal. From
// then on, push fails.
func (q *queue) end(r *wire.Refusal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.ending, q.refusal = true, true, r
	q.notify()
}

func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.ending = true, true
	q.kinds, q.raft, q.bytes, q.raftBytes = [3]batch{}, nil, 0, 0
	q.standing, q.refusal, q.retired = nil, nil, false
	q.notify()
}

// next returns the next frame: all queued data that fits into the size limit. If no data is queued,
// next returns a nil frame, and ended reports whether the queue has ended. The frame is valid until
// the next call.
func (q *queue) next() (frame *wire.Frame, ended bool, dropped int) {
	f := &q.frame
	f.Retired, f.Refusal = false, nil // the other fields are set by cut
	f.Raft = f.Raft[:0]
	raft, ended := q.cut(f)
	dropped = q.encode(f, raft)
	if f.Standing == nil && len(f.Renewals)+len(f.Commands)+len(f.Replies)+len(raft) == 0 && !f.Retired &&
		f.Refusal == nil {
		return nil, ended, dropped
	}
	return f, false, dropped
}

func (q *queue) cut(f *wire.Frame) (raft []*raftpb.Message, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.Standing, q.standing = q.standing, nil
	if q.lent != nil {
		q.spare, q.lent = q.lent[:0], nil
	}
	limit := q.config.MessageBytes - slackBytes
	f.Renewals = q.kinds[0].cut(frameBytes, limit)
	total := len(f.Renewals)
	// The three kinds take turns at being first. The first kind that has data may exceed the soft
	// limit; otherwise a large piece would never be sent.
	for i := range 3 {
		soft, hard := max(0, min(frameBytes, limit)-total), limit-total
		if total > len(f.Renewals) {
			hard = soft
		}
		switch (q.turn + i) % 3 {
		case 0:
			f.Commands = q.kinds[1].cut(soft, hard)
			total += len(f.Commands)
		case 1:
			f.Replies = q.kinds[2].cut(soft, hard)
			total += len(f.Replies)
		case 2:
			n := 0
			raft, n = q.cutRaft(soft, hard)
			total += n
		}
	}
	q.turn++
	q.bytes -= len(f.Renewals) + len(f.Commands) + len(f.Replies)
	if q.bytes == 0 && len(q.raft) == 0 {
		f.Retired, q.retired = q.retired, false
		f.Refusal, q.refusal = q.refusal, nil
		return raft, q.ending
	}
	return raft, false
}

// cutRaft removes the first messages that fit into soft bytes. If none fits, it takes the first
// message if that fits into hard bytes. The caller holds mu.
func (q *queue) cutRaft(soft, hard int) (taken []*raftpb.Message, size int) {
	n := 0
	for n < len(q.raft) {
		next := size + raftSize(q.raft[n])
		if next > soft && (n > 0 || next > hard) {
			break
		}
		size, n = next, n+1
	}
	if n > 0 && n == len(q.raft) {
		q.lent, q.raft, q.spare = q.raft, q.spare, nil
		taken = q.lent
	} else {
		taken, q.raft = q.raft[:n:n], q.raft[n:]
	}
	q.raftBytes -= size
	return taken, size
}

// encode puts the encoded raft messages into f. It drops messages that are too large or cannot be
// encoded. The caller does not hold mu.
func (q *queue) encode(f *wire.Frame, raft []*raftpb.Message) (dropped int) {
	arena := q.arena[:0]
	ends := q.ends[:0]
	room := q.config.MessageBytes - slackBytes/2 - len(f.Renewals) - len(f.Commands) - len(f.Replies)
	for _, m := range raft {
		out, err := appendMessage(arena, m)
		if err != nil || len(out)+8*(len(ends)+1) > room {
			dropped++
			continue
		}
		arena = out
		ends = append(ends, len(arena))
	}
	start := 0
	for _, end := range ends {
		f.Raft = append(f.Raft, arena[start:end:end])
		start = end
	}
	clear(raft) // the slice is reused, and must not keep messages in memory
	q.ends, q.arena = nil, nil
	if len(raft) == 0 || cap(arena) <= spareBytes && q.habit.keeps(cap(arena), len(arena)) {
		q.ends, q.arena = ends[:0], arena
	}
	return dropped
}
