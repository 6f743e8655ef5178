package keeper

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session"
)

const (
	blobBytes   = 1 << 20  // a proposal with this many bytes of commands is full
	queuedBytes = 32 << 20 // limit of the bytes of runs that wait to be proposed
	peerBytes   = 8 << 20  // the same limit for the runs of one peer
	runBytes    = 128      // counted for each run in addition to its commands, which may be a few bytes
)

// queue contains the commands of clients that wait to be proposed.
type queue struct {
	runs    []commandRun
	bytes   int          // with those of the runs that paces holds
	blob    []commandRun // the runs of the last batch
	retryAt clock.Time   // no batch is proposed earlier
	likely  int          // of runs; see session.Emptied
	batch   int          // the same of blob
}

func (p *commandRun) size() int { return runBytes + len(p.bytes) }

// admit counts the bytes of a run, if there is room for them.
func (q *queue) admit(p *commandRun) bool {
	if q.bytes+p.size() > queuedBytes || p.peer.queued+p.size() > peerBytes {
		return false
	}
	q.bytes += p.size()
	p.peer.queued += p.size()
	return true
}

func (q *queue) add(p commandRun) { q.runs = append(q.runs, p) }

// remove ends the counting of a run that waits no more.
func (q *queue) remove(p *commandRun) {
	q.bytes -= p.size()
	p.peer.queued -= p.size()
}

// proposed ends the batch.
func (q *queue) proposed() { q.blob = session.Emptied(q.blob, &q.batch) }

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
	if len(q.blob) == len(q.runs) {
		q.runs = session.Emptied(q.runs, &q.likely)
		return blob
	}
	left := copy(q.runs, q.runs[len(q.blob):])
	clear(q.runs[left:])
	q.runs = q.runs[:left]
	return blob
}
