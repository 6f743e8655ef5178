package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/raftlog"
)

// levels records the levels of the lines that are logged.
type levels struct {
	slog.Handler
	all *[]slog.Level
}

func (l levels) Enabled(context.Context, slog.Level) bool { return true }

func (l levels) Handle(_ context.Context, r slog.Record) error {
	*l.all = append(*l.all, r.Level)
	return nil
}

// isIll reports whether a disk in this state ends the vote or makes it doubtful.
func isIll(state DiskState) bool { return state != "" && state != DiskLow }

// TestFaultsOfADiskAreToldOnce goes from each state of the disk to each other one, by faults that
// pass and by faults that last. A fault that goes on keeps the time at which it was noticed. Each
// change is logged once, and reported to the voters at once.
func TestFaultsOfADiskAreToldOnce(t *testing.T) {
	states := []DiskState{"", DiskFailed, DiskHung, DiskRemoved, DiskLow, DiskNoFiles}
	begun := time.Unix(1000, 0)
	for _, lasting := range states {
		for _, passing := range states {
			for _, next := range states {
				for _, lasts := range []bool{false, true} {
					if lasts && next == "" {
						continue // a lasting fault ends in diskWell
					}
					t.Run(fmt.Sprintf("lasting %q, passing %q, then %q, which lasts: %t", lasting, passing, next, lasts),
						func(t *testing.T) { faultOfADisk(t, begun, lasting, passing, next, lasts) })
				}
			}
		}
	}
}

func faultOfADisk(t *testing.T, begun time.Time, lasting, passing, next DiskState, lasts bool) {
	r := newRig(t)
	n, now := r.n, begun
	n.env.wall = func() time.Time { return now }
	var logged []slog.Level
	n.logger = slog.New(levels{slog.DiscardHandler, &logged})
	fault := func(state DiskState) *DiskFault {
		if state == "" {
			return nil
		}
		return &DiskFault{State: state, Since: begun}
	}
	n.disk.lasts, n.disk.passes = fault(lasting), fault(passing)
	now = begun.Add(time.Minute)
	cause := errors.New("broken")
	if next == DiskNoFiles {
		cause = fmt.Errorf("%w: %w", raftlog.ErrStorage, syscall.EMFILE)
	}
	var level slog.Level
	silent, goesOn := false, false
	if lasts {
		n.disk.lasts = fault(lasting)
		n.diskFailed(next, cause)
		known := lasting != "" || isIll(passing)
		silent, goesOn = lasting == next || lasting == DiskRemoved, known
		if level = slog.LevelError; known {
			level = slog.LevelInfo
		}
		if silent {
			next = lasting
		}
	} else {
		n.passing(next, cause.Error())
		silent = passing == next || lasting != ""
		goesOn = passing == next || isIll(passing) && isIll(next)
		switch {
		case next == "", isIll(passing) && isIll(next):
			level = slog.LevelInfo
		case next == DiskLow:
			level = slog.LevelWarn
		default:
			level = slog.LevelError
		}
	}
	want := []slog.Level{level}
	if silent {
		want = nil
	}
	if fmt.Sprint(logged) != fmt.Sprint(want) {
		t.Errorf("logged %v, want %v", logged, want)
	}
	reports := len(n.disk.news) == 1
	if reports == silent {
		t.Errorf("a report is due: %t", reports)
	}
	got := n.disk.passes
	if lasts {
		got = n.disk.lasts
	}
	switch {
	case next == "":
		if got != nil {
			t.Errorf("the fault %v remains", got)
		}
	case got == nil || got.State != next:
		t.Errorf("the fault is %v", got)
	case goesOn != got.Since.Equal(begun):
		t.Errorf("the fault goes on: %t, and is known since %v", goesOn, got.Since.Sub(begun))
	}
	if shown := n.diskFault(); lasting != "" && (shown == nil || !lasts && shown.State != lasting) {
		t.Errorf("while a fault lasts, %v is shown", shown)
	}
}

// TestAFaultEndsOnceTheReplicaWorks checks which faults that last end when a replica has stored a
// configuration that names it: all but a removed directory, and only by this instance's replica.
func TestAFaultEndsOnceTheReplicaWorks(t *testing.T) {
	for _, state := range []DiskState{DiskFailed, DiskHung, DiskRemoved, DiskLow, DiskNoFiles} {
		r := newRig(t)
		r.withReplica()
		r.n.disk.lasts = &DiskFault{State: state}
		r.n.diskWell(&ownReplica{node: r.n, View: r.voted().View})
		if f := r.n.diskFault(); f == nil {
			t.Errorf("%s: a replica that was replaced has ended the fault", state)
		}
		r.n.diskWell(r.voted())
		if f := r.n.diskFault(); (f != nil) != (state == DiskRemoved) {
			t.Errorf("%s: afterwards the fault is %v", state, f)
		}
	}
}

// still is a clock that stands.
type still clock.Time

func (s still) Now() clock.Time { return clock.Time(s) }

type starvedLog struct {
	recordedLog
	ended clock.Time
}

func (l starvedLog) Status() raftlog.Status { return raftlog.Status{StarvedEnd: l.ended} }

// TestACallThatHangsIsAFault checks when a call to the disk counts as hung: after three seconds,
// but only after thirty if the machine has just given this process no processor.
func TestACallThatHangsIsAFault(t *testing.T) {
	now := clock.Time(time.Hour)
	justNow := now.Add(-diskHungAfter - diskLookEvery + 1)
	for _, c := range []struct {
		hung    time.Duration
		starved clock.Time
		want    bool
	}{
		{0, 0, false}, {diskHungAfter - 2, 0, false}, {diskHungAfter, 0, true}, {diskHungAfter + 2, 0, true},
		{diskHungAfter, justNow, false}, {diskHungAfter, justNow - 1, true}, {diskHungAfter, now, false},
		{diskBlamedAfter - 2, now, false}, {diskBlamedAfter + 2, now, true},
	} {
		for call := range diskCall(len(diskWatch{}.began)) {
			r := newRig(t)
			r.withDir()
			r.withReplica()
			r.voted().log = starvedLog{recordedLog{r}, c.starved}
			r.n.env.clock = still(now)
			if c.hung > 0 {
				r.n.disk.began[call].Store(int64(now.Add(-c.hung)))
			}
			r.n.lookAtDisk(false)
			if f := r.n.diskFault(); (f != nil) != c.want || f != nil && f.State != DiskHung {
				t.Errorf("a call %d that hangs for %v, starved until %v ago, is the fault %v", call, c.hung,
					now.Sub(c.starved), f)
			}
		}
	}
	r := newRig(t)
	if end := r.n.starvedEnd(); end != 0 {
		t.Errorf("without a replica the process was starved until %v", end)
	}
}
