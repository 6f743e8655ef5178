package raftlog

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// jumping is a clock that a test moves on. To its reader a jump looks like a time in which the
// process got no processor.
type jumping struct {
	clock.Clock
	by atomic.Int64
}

func (j *jumping) Now() clock.Time { return j.Clock.Now().Add(time.Duration(j.by.Load())) }

type page struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// A late tick of an idle owner shows that the machine gave the process no processor. A late tick of
// an owner that was busy shows nothing of the kind.
func TestAStarvedOwnerSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		stall func(j *jumping, l *Log, app *recorder)
		want  bool
	}{
		"no processor": {func(j *jumping, _ *Log, _ *recorder) { j.by.Add(int64(1200 * time.Millisecond)) }, true},
		"a long turn": {func(_ *jumping, l *Log, app *recorder) {
			app.view(func(r *recorder) {
				r.onApply = func() error { time.Sleep(1200 * time.Millisecond); return nil }
			})
			l.Propose(l.Status().Term, []byte("k"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, out := &jumping{Clock: clock.Monotonic()}, &page{}
				p := startParty(t, 3, func(c *Config) { c.Clock, c.Logger = j, textLogger(out) })
				l, app := p.logs[1], p.apps[1]
				l.Campaign()
				time.Sleep(1010 * time.Millisecond) // between two ticks
				c.stall(j, l, app)
				time.Sleep(1300 * time.Millisecond)
				app.view(func(r *recorder) { r.onApply = nil })
				const words = "this machine gave the process no processor for 1.2s"
				if got := strings.Contains(out.String(), words); got != c.want {
					t.Errorf("it is %v that the log names the processor:\n%s", got, out)
				}
				if st := l.Status(); (st.Starved.Round(100*time.Millisecond) == 1200*time.Millisecond) != c.want ||
					(st.StarvedEnd != 0) != c.want {
					t.Errorf("starved for %v until %v", st.Starved, st.StarvedEnd)
				}
			})
		})
	}
}

// TestALateTickReachesTheCore checks that the core learns of each late tick, so that it does not
// call the disk faulty when the machine gave the process no processor.
func TestALateTickReachesTheCore(t *testing.T) {
	l := &Log{core: &Core{}}
	l.cfg.Logger, l.core.cfg.Tick = slog.New(slog.DiscardHandler), 100*time.Millisecond
	now := clock.Time(time.Hour)
	l.late(now)
	if l.core.hang.late != 0 {
		t.Errorf("an owner that was busy was late by %v", l.core.hang.late)
	}
	l.starving.due = now.Add(-time.Second)
	l.late(now)
	if l.core.hang.late != time.Second {
		t.Errorf("the core has a delay of %v", l.core.hang.late)
	}
}
