package keeper

import (
	"github.com/mortise-lock/mortise/internal/clock"
)

const (
	blobBytes   = 1 << 20  // a proposal with this many bytes of commands is full
	queuedBytes = 32 << 20 // limit of the command bytes that wait to be proposed
	peerBytes   = 8 << 20  // the same limit for the commands of one peer
)

// queue contains the commands of clients that wait to be proposed.
type queue struct {
	runs    []commandRun
	bytes   int          // with those of the runs that paces holds
	blob    []commandRun // the runs of the last batch
	retryAt clock.Time   // no batch is proposed earlier
}

// admit counts the bytes of a run, if there is room for them.
func (q *queue) admit(p *commandRun) bool {
	if q.bytes+len(p.bytes) > queuedBytes || p.peer.queued+len(p.bytes) > peerBytes {
		return false
	}
	q.bytes += len(p.bytes)
	p.peer.queued += len(p.bytes)
	return true
}

func (q *queue) add(p commandRun) { q.runs = append(q.runs, p) }

// remove ends the counting of a run that waits no more.
func (q *queue) remove(p *commandRun) {
	q.bytes -= len(p.bytes)
	p.peer.queued -= len(p.bytes)
}

// refused is called when the log has not accepted the batch.
func (q *queue) refused(now clock.Time) { q.retryAt = now.Add(retryAfter) }

// fill begins the next batch with runs from the front, and returns the length of their commands.
func (q *queue) fill() (size int) {
	q.blob = q.blob[:0]
	for _, p := range q.runs {
		if size >= blobBytes {
			break
		}
		size += len(p.bytes)
		q.blob = append(q.blob, p)
	}
	return size
}

// append adds the commands of the batch, whose runs then leave the queue.
func (q *queue) append(blob []byte) []byte {
	for _, p := range q.blob {
		blob = append(blob, p.bytes...)
	}
	q.runs = q.runs[:copy(q.runs, q.runs[len(q.blob):])]
	clear(q.runs[len(q.runs):cap(q.runs)])
	return blob
}
