package session

import "github.com/mortise-lock/mortise/internal/clock"

// Sent remembers when numbered messages were sent that are not acknowledged yet. It keeps the
// newest few: a client that waits for an older renewal than these has lost its lease long ago. A
// client keeps its renewals here, and a keeper the answers of which no renewal has said yet that
// they were heard.
type Sent struct {
	waiting []sentMessage
}

type sentMessage struct {
	seq  uint64
	sent clock.Time
}

// sentKept is how many messages Sent remembers.
const sentKept = 8

// note adds a message that is sent now.
func (s *Sent) Note(seq uint64, now clock.Time) {
	if len(s.waiting) == sentKept {
		copy(s.waiting, s.waiting[1:])
		s.waiting = s.waiting[:sentKept-1]
	}
	s.waiting = append(s.waiting, sentMessage{seq: seq, sent: now})
}

// acknowledged returns when the named message was sent and forgets it together with the older ones.
func (s *Sent) Acknowledged(seq uint64) (sent clock.Time, ok bool) {
	for i, w := range s.waiting {
		if w.seq == seq {
			s.waiting = append(s.waiting[:0], s.waiting[i+1:]...)
			return w.sent, true
		}
	}
	return 0, false
}

// forget drops all messages: the attachment on which they were sent is over, and none will be
// acknowledged.
func (s *Sent) Forget() { s.waiting = s.waiting[:0] }

// oldest returns when the oldest unacknowledged message was sent.
func (s *Sent) Oldest() (sent clock.Time, ok bool) {
	if len(s.waiting) == 0 {
		return 0, false
	}
	return s.waiting[0].sent, true
}

// count returns how many messages are remembered.
func (s *Sent) Count() int { return len(s.waiting) }
