package instance

import (
	"log/slog"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

const lossEvery = time.Minute

// lossLog decides which lines to log about the losses of one session's lease: at most one a minute,
// and the last line is true a minute later. The first loss is logged at once. A session with a
// short TTL may lose its lease and get it again many times a minute: one line has their number.
type lossLog struct {
	said  clock.Time // time of the last line; zero means never
	lost  bool       // the session has no lease
	told  bool       // the last line said so
	since clock.Time // when the lease was lost last

	// losses since the last line
	times, locks int
	why          string
	session      uint64
	ttl          time.Duration
}

type lossLine struct {
	level slog.Level
	text  string
	args  []any
}

// note updates the log with a change of the session. It returns nil unless a line is due.
func (l *lossLog) note(now clock.Time, before, after *client.Status) *lossLine {
	switch {
	case before.Lease != client.Lost && after.Lease == client.Lost && after.Session == before.Session:
		l.lose(now, before, "a lease ran out, since no leader has answered")
		if after.Late >= before.TTL/3 { // the client did not even ask for a renewal
			l.why = "a lease ran out, since " + clock.NoProcessor(after.Late)
		}
	case before.Lease != client.Lost && after.Session != before.Session && after.Ended == client.SessionExpired:
		l.lose(now, before, "the group has ended a session of this instance")
		if after.Late >= before.TTL/3 {
			l.why += ", since " + clock.NoProcessor(after.Late)
		}
	case l.lost && after.Lease == client.Safe:
		l.lost, l.session = false, uint64(after.Session)
	}
	if l.said != 0 && now.Sub(l.said) < lossEvery || l.times == 0 && l.lost == l.told {
		return nil
	}
	line := l.line(now)
	l.said, l.told, l.times, l.locks = now, l.lost, 0, 0
	return line
}

func (l *lossLog) lose(now clock.Time, before *client.Status, why string) {
	l.lost, l.since, l.why = true, now, why
	l.times, l.locks = l.times+1, l.locks+before.Held
	l.session, l.ttl = uint64(before.Session), before.TTL
}

func (l *lossLog) line(now clock.Time) *lossLine {
	line := &lossLine{text: "the session has a lease again, so locks can be granted", args: []any{"session", l.session}}
	if l.times > 0 {
		line.args = append(line.args, "ttl", l.ttl)
		if line.text = l.why + ": this session held no lock"; l.locks > 0 {
			line.level, line.text = slog.LevelWarn, l.why+": the locks of this session are lost"
			line.args = append(line.args, "locks", l.locks)
		}
		if l.times > 1 {
			line.args = append(line.args, "times", l.times)
		}
		if !l.lost {
			line.text += "; it has a lease again"
		}
	}
	if l.lost && now != l.since {
		line.args = append(line.args, "for", now.Sub(l.since).Round(time.Second/10))
	}
	return line
}
