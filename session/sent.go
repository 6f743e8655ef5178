package session

import "github.com/mortise-lock/mortise/internal/clock"

// Sent stores the times at which unacknowledged messages were sent: renewals of a client, or
// answers of a keeper. It keeps only the newest 8 messages, because a client that waits for an
// older renewal has lost its lease.
type Sent struct {
	waiting []sentMessage
}

type sentMessage struct {
	seq  uint64
	sent clock.Time
}

const sentKept = 8

// Note records that the message seq was sent at now.
func (s *Sent) Note(seq uint64, now clock.Time) {
	if len(s.waiting) == sentKept {
		copy(s.waiting, s.waiting[1:])
		s.waiting = s.waiting[:sentKept-1]
	}
	s.waiting = append(s.waiting, sentMessage{seq: seq, sent: now})
}

// Acknowledged returns the time at which the message seq was sent. It removes that message and
// all older ones.
func (s *Sent) Acknowledged(seq uint64) (sent clock.Time, ok bool) {
	for i, w := range s.waiting {
		if w.seq == seq {
			s.waiting = append(s.waiting[:0], s.waiting[i+1:]...)
			return w.sent, true
		}
	}
	return 0, false
}

// Forget removes all messages.
func (s *Sent) Forget() { s.waiting = s.waiting[:0] }

// Oldest returns the time at which the oldest unacknowledged message was sent.
func (s *Sent) Oldest() (sent clock.Time, ok bool) {
	if len(s.waiting) == 0 {
		return 0, false
	}
	return s.waiting[0].sent, true
}

// Count returns the number of recorded messages.
func (s *Sent) Count() int { return len(s.waiting) }
