package transport

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

const (
	noticeEvery = 10 * time.Second // shortest time between two log lines of one kind
	noticeKinds = 16               // limit for kinds of events; beyond it, instances share a kind
)

// notices logs events that outsiders can cause, at most one line per kind in ten seconds. While
// there are fewer than noticeKinds kinds, an event has a separate kind for each instance.
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

func (n *notices) warn(text string, args ...any) { n.warnOf("", text, args...) }

func (n *notices) info(text string, args ...any) { n.tell(slog.LevelInfo, "", text, args...) }

func (n *notices) warnOf(about, text string, args ...any) {
	n.tell(slog.LevelWarn, about, text, args...)
}

func (n *notices) tell(level slog.Level, about, text string, args ...any) {
	key := about + text
	n.mu.Lock()
	now := time.Now()
	known := n.last[key]
	if known == nil && about != "" && !n.room(now) {
		key = text
		known = n.last[key]
	}
	if known != nil && now.Sub(known.at) < noticeEvery {
		known.skipped++
		n.mu.Unlock()
		return
	}
	if known == nil {
		known = &notice{}
		n.last[key] = known
	}
	skipped := known.skipped
	known.at, known.skipped = now, 0
	n.mu.Unlock()
	if skipped > 0 {
		args = append(args, "alike_before", skipped)
	}
	n.logger.Log(context.Background(), level, text, args...)
}

// room reports whether there is room for one more kind. The caller holds mu.
func (n *notices) room(now time.Time) bool {
	if len(n.last) >= noticeKinds {
		maps.DeleteFunc(n.last, func(_ string, old *notice) bool { return now.Sub(old.at) >= noticeEvery })
	}
	return len(n.last) < noticeKinds
}
