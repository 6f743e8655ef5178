package instance

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

func leased(held int) client.Status {
	return client.Status{Session: 7, TTL: time.Second, Lease: client.Safe, Held: held}
}

func lostLease(late time.Duration) client.Status {
	return client.Status{Session: 7, TTL: time.Second, Lease: client.Lost, Late: late}
}

func (l *lossLine) String() string {
	if l == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintln(append([]any{l.level, l.text}, l.args...)...))
}

// The first loss is told at once, with its cause. What follows within a minute is one line, with
// the number of losses and locks, and the last line is true.
func TestLossesOfALease(t *testing.T) {
	var l lossLog
	now := clock.Time(1)
	safe, held, lost := leased(0), leased(2), lostLease(0)
	starved, other := lostLease(1300*time.Millisecond), leased(0)
	other.Session, other.Ended = 8, client.SessionExpired
	for i, step := range []struct {
		after        time.Duration
		before, then *client.Status
		want         string
	}{
		{0, &held, &lost, "WARN a lease ran out, since no leader has answered: the locks of this session are lost " +
			"session 7 ttl 1s locks 2"},
		{300 * time.Millisecond, &lost, &safe, ""}, // said a minute later, unless it is lost again
		{20 * time.Second, &held, &lost, ""},
		{time.Second, &lost, &safe, ""},
		{10 * time.Second, &held, &starved, ""},
		{time.Second, &starved, &safe, ""},
		{20 * time.Second, &safe, &safe, ""},
		{8 * time.Second, &safe, &safe, "WARN a lease ran out, since this machine gave the process no processor for 1.3s: " +
			"the locks of this session are lost; it has a lease again session 7 ttl 1s locks 4 times 2"},
		{2 * time.Minute, &safe, &lost, "INFO a lease ran out, since no leader has answered: this session held no lock " +
			"session 7 ttl 1s"},
		{2 * time.Minute, &lost, &safe, "INFO the session has a lease again, so locks can be granted session 7"},
		{5 * time.Second, &held, &lost, ""},
		{55 * time.Second, &lost, &lost, "WARN a lease ran out, since no leader has answered: the locks of this session " +
			"are lost session 7 ttl 1s locks 2 for 55s"},
		{2 * time.Minute, &lost, &safe, "INFO the session has a lease again, so locks can be granted session 7"},
		{2 * time.Minute, &held, &other, "WARN the group has ended a session of this instance: the locks of this session " +
			"are lost session 7 ttl 1s locks 2"},
	} {
		now = now.Add(step.after)
		if got := l.note(now, step.before, step.then).String(); got != step.want {
			t.Errorf("step %d: %q\nwant %q", i, got, step.want)
		}
	}
}

// A session that loses its lease again and again gets at most a line a minute, at any pace. No lock
// is left out, and a loss of locks is a warning.
func TestLossesAreToldSeldom(t *testing.T) {
	for _, every := range []time.Duration{500 * time.Millisecond, 15 * time.Second, 29 * time.Second, time.Minute} {
		var l lossLog
		lines, locks := 0, 0
		note := func(now clock.Time, before, after client.Status) {
			line := l.note(now, &before, &after)
			if line == nil {
				return
			}
			lines++
			for i, arg := range line.args {
				if arg == "locks" {
					locks += line.args[i+1].(int)
					if line.level != slog.LevelWarn {
						t.Errorf("every %v: %v", every, line)
					}
				}
			}
		}
		now, losses := clock.Time(1), 0
		for ; now.Sub(1) < time.Hour; now = now.Add(every) {
			note(now, leased(1), lostLease(0))
			note(now.Add(every/2), lostLease(0), leased(1))
			losses++
		}
		note(now.Add(time.Minute), leased(1), leased(1))
		if lines > 62 || lines < 2 || locks != losses {
			t.Errorf("every %v: %d lines in an hour, with %d locks of %d", every, lines, locks, losses)
		}
	}
}
