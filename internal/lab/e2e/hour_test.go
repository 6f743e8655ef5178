package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// anHour returns how long the tests of long runs last in fake time. The shortest time is long
// enough for a wrong ping policy of gRPC to end connections, which takes 90 s.
func anHour() time.Duration {
	switch {
	case underRace:
		return 75 * time.Second
	case testing.Short():
		return 15 * time.Minute
	}
	return time.Hour
}

// calm is the state that must never change on any instance of a healthy group.
type calm struct {
	leader     int
	term       uint64
	sessions   string
	dials      int64
	goroutines int
}

func watched(t *testing.T, n int) (f *fleet, dials *atomic.Int64, log *lines) {
	dials, log = new(atomic.Int64), new(lines)
	f = newFleet(t)
	f.alter = func(e *outside.World) {
		dial := e.Dial
		e.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, address)
		}
	}
	for i := range n {
		c := f.config(i, 3)
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		f.start(i, c)
	}
	f.ready()
	time.Sleep(30 * time.Second) // by now the connections that only the start needed are closed
	log.reset()
	return f, dials, log
}

func (l *lines) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// calm counts the fewest goroutines of two seconds, because some tasks begin one for a moment.
func (f *fleet) calm(dials *atomic.Int64) calm {
	goroutines := math.MaxInt
	for range 50 {
		time.Sleep(40 * time.Millisecond)
		synctest.Wait()
		goroutines = min(goroutines, runtime.NumGoroutine())
	}
	c := calm{leader: f.leader(), dials: dials.Load(), goroutines: goroutines}
	c.term = f.nodes[c.leader].Status().Term
	for _, n := range f.nodes {
		c.sessions += fmt.Sprint(n.Client.Status().Session, " ")
	}
	return c
}

// TestAnHourOfNothing checks that an idle group ends no connection, holds no election and needs no
// additional memory.
func TestAnHourOfNothing(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, dials, log := watched(t, 4) // three voters and an instance without a vote
		mine := f.lock(3, "k")
		before := f.calm(dials)
		time.Sleep(anHour())
		if after := f.calm(dials); after != before {
			t.Errorf("it began with %+v and ended with %+v", before, after)
		}
		for _, word := range []string{"too_many_pings", "ENHANCE_YOUR_CALM", "level=WARN", "level=ERROR"} {
			if found := log.matching(word); len(found) > 0 {
				t.Errorf("%d lines with %q, the first: %s", len(found), word, found[0])
			}
		}
		if err := mine.Err(); err != nil {
			t.Errorf("a lock got lost in an hour of nothing: %v", err)
		}
		unlock(t, mine)
		f.nothingLeft()
	})
}

func TestAnHourOfLittle(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, dials, log := watched(t, 4)
		mine := f.lock(3, "mine")
		before := f.calm(dials)
		var last mortise.Token
		began := time.Now()
		for turn := 0; time.Since(began) < anHour(); turn++ {
			l := f.lock(turn%4, "k")
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			time.Sleep(time.Duration(20+turn%17) * time.Second)
			if err := errors.Join(mine.Err(), l.Err()); err != nil {
				t.Fatalf("turn %d: %v", turn, err)
			}
			unlock(t, l)
		}
		if after := f.calm(dials); after != before {
			t.Errorf("it began with %+v and ended with %+v", before, after)
		}
		if found := log.matching("level=WARN"); len(found) > 0 {
			t.Errorf("%d warnings, the first: %s", len(found), found[0])
		}
		unlock(t, mine)
		f.nothingLeft()
	})
}
