package e2e

import (
	"bytes"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func logged(level slog.Level) (logs map[string]*lines, into func(*mortise.Config)) {
	logs = map[string]*lines{}
	return logs, func(c *mortise.Config) {
		if logs[c.Name] == nil {
			logs[c.Name] = new(lines)
		}
		c.Logger = slog.New(slog.NewTextHandler(logs[c.Name], &slog.HandlerOptions{Level: level}))
	}
}

func (l *lines) take() []string {
	synctest.Wait()
	defer l.reset()
	return l.matching("")
}

func TestAtMostFiveLinesAtStart(t *testing.T) {
	slow.UnderRace(t)
	for name, c := range map[string]struct {
		nodes  int
		change func(t *testing.T, c *mortise.Config)
	}{
		"one on its own": {1, func(_ *testing.T, c *mortise.Config) {
			c.Join, c.Replicas, c.Bind = nil, 0,
				""
		}},
		"four in memory":         {4, func(*testing.T, *mortise.Config) {}},
		"three with directories": {3, func(t *testing.T, c *mortise.Config) { inDir(t.TempDir())(c) }},
		"three with a secret":    {3, func(_ *testing.T, c *mortise.Config) { withSecret(secretA)(c) }},
		"three with a grace":     {3, func(_ *testing.T, c *mortise.Config) { c.Grace = 10 * time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				logs, into := logged(slog.LevelInfo)
				startFleet(t, c.nodes, func(config *mortise.Config) { c.change(t, config) }, into)
				time.Sleep(time.Minute)
				for name, l := range logs {
					if got := l.take(); len(got) > 5 || len(got) == 0 {
						t.Errorf("%s wrote %d lines:\n%s", name, len(got), strings.Join(got, ""))
					}
				}
			})
		})
	}
}

func wantLines(t *testing.T, who string, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("%s wrote\n%swant one line each with %q", who, strings.Join(got, ""), want)
	}
}

func TestOneLineForAChange(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		logs, into := logged(slog.LevelInfo)
		f := startFleet(t, 4, into)
		time.Sleep(time.Minute)
		take := func(i int) []string { return logs[f.config(i, 4).Name].take() }
		for i := range 4 {
			take(i)
		}
		old := f.leader()
		f.crash(old)
		time.Sleep(time.Minute)
		leader := f.leader()
		wantLines(t, "the new leader", take(leader), "this replica is now the leader", "is added as a learner", "gets a vote")
		follower := (old + 1) % 4
		if follower == leader {
			follower = (old + 2) % 4
		}
		for i := range 4 {
			if i != old && i != leader {
				wantLines(t, "a follower", take(i))
			}
		}
		f.lock(follower, "k")
		f.isolate(follower)
		time.Sleep(time.Minute)
		// This line is logged only if the instance votes.
		got := slices.DeleteFunc(take(follower),
			func(line string) bool { return strings.Contains(line, "has no leader") })
		wantLines(t, "the instance that was cut off", got,
			"a lease ran out, since no leader has answered: the locks of this session are lost")
		f.rejoin(follower)
		time.Sleep(time.Minute)
		got = slices.DeleteFunc(take(follower), func(line string) bool { return !strings.Contains(line, "lease") })
		wantLines(t, "the instance that is back", got, "the session has a lease again")
		take(leader)
		f.close(follower)
		wantLines(t, "the instance that was closed", take(follower))
	})
}

func TestWhatRepeatsIsSaidSeldom(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		logs, into := logged(slog.LevelInfo)
		f := startFleet(t, 3, withSecret(secretA), into)
		time.Sleep(time.Minute)
		all := func(most int, what string) {
			t.Helper()
			for name, l := range logs {
				if got := l.take(); len(got) > most {
					t.Errorf("%s: %s wrote %d lines, want at most %d:\n%s", what, name, len(got), most,
						strings.Join(got[:20], ""))
				}
			}
		}
		all(5, "the start")
		r := f.nodes[0].Replica()
		to := uint64(12345)
		minutes := slow.Sized(4, 10)
		for range 60 * minutes {
			r.SendSnapshot(&raftpb.Message{To: &to}, func(bool) {})
			time.Sleep(time.Second)
		}
		if got := logs["node-0"].take(); len(got) < minutes-1 || len(got) > minutes+1 {
			t.Errorf("in %d minutes a snapshot each second did not arrive, and %d lines speak of it:\n%s", minutes, len(got),
				strings.Join(got, ""))
		}
		stranger := f.config(3, 3)
		withSecret(secretB)(&stranger)
		f.start(3, stranger)
		time.Sleep(2 * time.Minute)
		f.close(3)
		all(2*2*6+5, "two minutes of a stranger, two kinds of whose attempts may be told every ten seconds")
		for i := range 3 {
			for j := range i {
				f.net.Cut(host(i), host(j))
			}
		}
		time.Sleep(time.Duration(minutes) * time.Minute)
		all(5, "some minutes in pieces")
	})
}

func TestGossipAndRaftSpeakThroughTheLogger(t *testing.T) {
	var global bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&global)
	bubble(t, func(t *testing.T) {
		logs, into := logged(slog.LevelDebug)
		f := startFleet(t, 3, into)
		f.crash(f.leader())
		time.Sleep(time.Minute)
		for i := range f.nodes {
			f.close(i)
		}
		var gossip, raft int
		for name, l := range logs {
			for _, line := range l.take() {
				_, said, _ := strings.Cut(line, "msg=")
				switch {
				case strings.HasPrefix(said, "gossip line="):
					gossip++
					if !strings.Contains(line, "level=DEBUG") {
						t.Errorf("%s: gossip is loud: %s", name, line)
					}
				case strings.HasPrefix(said, `"raft: `):
					raft++
				case strings.Contains(line, "[DEBUG]"), strings.Contains(line, "[ERR]"),
					strings.Contains(line, "[WARN]"):
					t.Errorf("%s: a line of memberlist under another name: %s", name, line)
				}
			}
		}
		if gossip == 0 || raft == 0 {
			t.Errorf("%d lines of gossip and %d of raft", gossip, raft)
		}
	})
	if text := fmt.Sprint(&global); text != "" {
		t.Errorf("the program's own log got\n%s", text)
	}
}
