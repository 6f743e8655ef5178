package instance

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

const seldomEvery = time.Minute

// warnings are repeated seldom.
type warnings struct {
	busy   seldom // that the leader refuses queries
	files  seldom // that the directory cannot be checked without a file descriptor
	claims seldom // that an instance sends another one's raft ID
}

// seldom logs a warning at most once per seldomEvery. The zero value is ready to use. It is safe
// for concurrent use.
type seldom struct{ last atomic.Int64 } // last is a clock.Time; zero means never

func (s *seldom) warn(now clock.Time, log *slog.Logger, text string, args ...any) {
	last := s.last.Load()
	if last != 0 && now.Sub(clock.Time(last)) < seldomEvery || !s.last.CompareAndSwap(last, int64(now)) {
		return
	}
	log.Warn(text, args...)
}
