package transport

import (
	"log/slog"
	"sync"
	"time"
)

const (
	noticeEvery = 10 * time.Second // per kind of event
	noticeKinds = 64               // remembered at a time
)

// notices logs what outsiders can cause, at most one line per kind and ten seconds: a stranger on the port must not fill the log.
type notices struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   map[string]*notice
}

type notice struct {
	at      time.Time
	skipped int
}

func newNotices(logger *slog.Logger) *notices {
	return &notices{logger: logger, last: map[string]*notice{}}
}

// warn logs text with args unless the same text was logged a short while ago.
func (n *notices) warn(text string, args ...any) { n.warnOf("", text, args...) }

// warnOf is warn for each instance that the text is about.
func (n *notices) warnOf(about, text string, args ...any) {
	key := about + text
	n.mu.Lock()
	now := time.Now()
	known := n.last[key]
	if known != nil && now.Sub(known.at) < noticeEvery {
		known.skipped++
		n.mu.Unlock()
		return
	}
	if known == nil {
		if len(n.last) >= noticeKinds {
			clear(n.last)
		}
		known = &notice{}
		n.last[key] = known
	}
	skipped := known.skipped
	known.at, known.skipped = now, 0
	n.mu.Unlock()
	if skipped > 0 {
		args = append(args, "alike_before", skipped)
	}
	n.logger.Warn(text, args...)
}
