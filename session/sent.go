package session

import "github.com/mortise-lock/mortise/internal/clock"

// Sent remembers when unacknowledged numbered messages were sent: a client's renewals, or a
// keeper's answers that no renewal has confirmed as received. It keeps only the newest few, because
// a client that still waits for an older renewal has lost its lease long ago.
type Sent struct {
	waiting []sentMessage
}

type sentMessage struct {
	seq  uint64
	sent clock.Time
}

const sentKept = 8

// Note adds a message that is sent now.
func (s *Sent) Note(seq uint64, now clock.Time) {
	if len(s.waiting) == sentKept {
		copy(s.waiting, s.waiting[1:])
		s.waiting = s.waiting[:sentKept-1]
	}
	s.waiting = append(s.waiting, sentMessage{seq: seq, sent: now})
}

// Acknowledged returns when the message seq was sent. It forgets that message and the older ones.
func (s *Sent) Acknowledged(seq uint64) (sent clock.Time, ok bool) {
	for i, w := range s.waiting {
		if w.seq == seq {
			s.waiting = append(s.waiting[:0], s.waiting[i+1:]...)
			return w.sent, true
		}
	}
	return 0, false
}

// Forget drops all messages, because their attachment has ended.
func (s *Sent) Forget() { s.waiting = s.waiting[:0] }

// Oldest returns when the oldest unacknowledged message was sent.
func (s *Sent) Oldest() (sent clock.Time, ok bool) {
	if len(s.waiting) == 0 {
		return 0, false
	}
	return s.waiting[0].sent, true
}

// Count returns the number of remembered messages.
func (s *Sent) Count() int { return len(s.waiting) }
