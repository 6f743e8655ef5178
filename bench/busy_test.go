package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/exp/trace"
)

// TestTheBusiestIsNamed checks the last line of the budget of a crowd.
func TestTheBusiestIsNamed(t *testing.T) {
	owner := busyRow{role: "leader", name: "raftlog.(*Log).runOwner", ran: 830 * time.Millisecond,
		called: 700 * time.Millisecond}
	quiet := busyRow{role: "follower", name: "keeper.(*Keeper).run", ran: 500 * time.Millisecond}
	for _, c := range []struct {
		b    occupancy
		want string
	}{
		{occupancy{goroutines: []busyRow{owner, quiet}, processors: 8, cores: 3},
			"the busiest is raftlog.(*Log).runOwner of the leader: it runs for 83 % of the time, for 70 % in system calls, " +
				"which may wait for the disk (GOMAXPROCS=8, 3.0 cores in use, 0.0 by other processes)"},
		{occupancy{goroutines: []busyRow{quiet}, processors: 2, cores: 1.9},
			"no goroutine is above 50 %: processors are the limit (GOMAXPROCS=2, 1.9 cores in use, 0.0 by other processes)"},
		{occupancy{goroutines: []busyRow{quiet}, processors: 2, cores: 1, others: 0.9},
			"no goroutine is above 50 %: processors are the limit (GOMAXPROCS=2, 1.0 cores in use, 0.9 by other processes)"},
		{occupancy{goroutines: []busyRow{quiet}, processors: 8, cores: 2},
			"no goroutine is above 50 %, and processors are left (GOMAXPROCS=8, 2.0 cores in use, 0.0 by other processes): " +
				"take more callers"},
	} {
		c.b.window = time.Second
		if got := c.b.verdict(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestOnlyTheWindowCounts follows a goroutine through its states before, in and after the time that
// counts.
func TestOnlyTheWindowCounts(t *testing.T) {
	var a actor
	for _, s := range []struct {
		at    trace.Time
		state trace.GoState
	}{
		{10, trace.GoRunning}, {150, trace.GoSyscall}, {170, trace.GoWaiting}, {300, trace.GoRunnable},
		{310, trace.GoRunning},
	} {
		begin := trace.Time(0)
		if s.at > 100 {
			begin = 100
		}
		a.count(begin, s.at)
		a.state, a.since = s.state, s.at
	}
	a.count(100, 400)
	if a.ran != 50+20+90 || a.called != 20 || a.queued != 10 {
		t.Errorf("%+v", a.busyRow)
	}
}

// TestACrowdIsBusy runs a small crowd on three real members, and looks for their owner goroutines.
func TestACrowdIsBusy(t *testing.T) {
	o, err := parse([]string{"-budget", "-callers", "16", "-peers", "mortise-dir-tls", "-time", "200ms",
		"-dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := crowdBudget(t.Context(), o, io.Discard, &out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"The goroutines of mortise-dir-tls under 16 callers", "| leader | `raftlog.(*Log).runOwner` |",
		"| follower | `raftlog.(*Log).runOwner` |", "| leader | `raftlog.(*Log).runAppender` |",
		"callers and runtime together", " cores in use, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
	for _, wrong := range [][]string{{"-callers", "16"}, {"-budget", "-callers", "-1"}} {
		if _, err := parse(wrong); err == nil || !strings.Contains(err.Error(), "-callers") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
