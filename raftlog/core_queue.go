package raftlog

import "slices"

// queue holds batches that wait to be proposed. Invariant: buf[start:] is the concatenation of the
// batches that end at ends[first:], in order.
type queue struct {
	buf   []byte
	ends  []int // offset in buf where each batch ends
	start int   // offset in buf where the first batch begins
	first int   // ends[first] is the end of the first batch
}

// queueKeepBytes is the largest buffer that an empty queue keeps. A larger buffer is released.
const queueKeepBytes = 1 << 20

func (q *queue) size() int { return len(q.buf) - q.start }

// waiting returns all waiting batches, concatenated. The slice is valid until the queue changes.
func (q *queue) waiting() []byte { return q.buf[q.start:] }

// push copies a batch to the end. It ignores an empty batch.
func (q *queue) push(batch []byte) {
	if len(batch) == 0 {
		return
	}
	if q.start > len(q.buf)/2 && len(q.buf)+len(batch) > cap(q.buf) {
		q.compact()
	}
	q.buf = append(q.buf, batch...)
	q.ends = append(q.ends, len(q.buf))
}

// compact moves the waiting bytes to the front of the buffer. It runs only when half of the buffer
// is free, so each byte is moved about once.
func (q *queue) compact() {
	n := copy(q.buf, q.buf[q.start:])
	q.buf = q.buf[:n]
	m := copy(q.ends, q.ends[q.first:])
	q.ends = q.ends[:m]
	for i := range q.ends {
		q.ends[i] -= q.start
	}
	q.start, q.first = 0, 0
}

// peek returns a copy of the first batches, and their number. It returns at least one batch. It
// adds further whole batches while the total fits into limit bytes. The queue must not be empty.
// The log and the network keep the copy, while the queue reuses its buffer.
func (q *queue) peek(limit int) ([]byte, int) {
	n := 1
	for q.first+n < len(q.ends) && q.ends[q.first+n]-q.start <= limit {
		n++
	}
	return slices.Clone(q.buf[q.start:q.ends[q.first+n-1]]), n
}

func (q *queue) drop(n int) {
	q.start = q.ends[q.first+n-1]
	q.first += n
	if q.first < len(q.ends) {
		return
	}
	q.start, q.first, q.ends = 0, 0, q.ends[:0]
	if q.buf = q.buf[:0]; cap(q.buf) > queueKeepBytes {
		q.buf, q.ends = nil, nil
	}
}
