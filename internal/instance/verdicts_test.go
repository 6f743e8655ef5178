package instance

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/transport"
)

// A process that got no processor does not blame its disk, until the call has run for longer than
// any such gap explains. The disk of a process that had its processor is blamed.
func TestAStarvedProcessDoesNotBlameItsDisk(t *testing.T) {
	const now = clock.Time(time.Hour)
	for _, c := range []struct {
		what  string
		hung  time.Duration
		late  bool
		ended clock.Time
		want  bool
	}{
		{"a hanging write, never starved", 4 * time.Second, false, 0, false},
		{"a late check, never starved", 0, true, 0, false},
		{"a hanging write, starved until now", 4 * time.Second, false, now, true},
		{"a late check, starved until now", 0, true, now, true},
		{"a short write, starved until now", time.Millisecond, false, now, true},
		{"a hanging write, starved at its beginning", 4 * time.Second, false, now.Add(-4 * time.Second), true},
		{"a hanging write, starved before it", 4 * time.Second, false,
			now.Add(-diskHungAfter - diskLookEvery), false},
		{"a write that hangs for long, starved until now", diskBlamedAfter, false, now, false},
		{"nothing hangs, starved until now", 0, false, now, false},
	} {
		if got := excused(now, c.hung, c.late, c.ended); got != c.want {
			t.Errorf("%s: excused is %v", c.what, got)
		}
	}
}

// A leader that accepts no connection hands over after 3 s, and tries again each 10 s. An instance
// that does not lead never does, and has no earlier attempt when it leads.
func TestWhenALeaderHandsOver(t *testing.T) {
	var h handOvers
	const start = clock.Time(time.Hour)
	for _, c := range []struct {
		at, since time.Duration
		leads     bool
		want      bool
	}{
		{0, time.Minute, false, false},
		{0, unreachableFor - 1, true, false},
		{time.Second, unreachableFor, true, true},
		{2 * time.Second, unreachableFor + time.Second, true, false},
		{time.Second + handOverEvery - 1, time.Minute, true, false},
		{time.Second + handOverEvery, time.Minute, false, false},
		{time.Second + handOverEvery, time.Minute, true, true},
		{time.Minute, time.Second, true, false},
		{time.Minute, unreachableFor, true, true},
	} {
		if got := h.due(start.Add(c.at), c.since, c.leads); got != c.want {
			t.Errorf("at %v, for %v, leads %v: %v", c.at, c.since, c.leads, got)
		}
	}
}

// Package cluster judges an answer by its error, so each error of the port becomes that of package
// cluster, and no other one.
func TestEachErrorOfThePortHasItsKind(t *testing.T) {
	rules := fmt.Errorf("%w: x: %s 3 and 4", transport.ErrRules, transport.OtherRules)
	for _, c := range []struct {
		err  error
		kind error  // of package cluster, or nil for silence
		why  string // of silence, or ""
	}{
		{nil, nil, ""}, {errors.New("another"), nil, ""}, {transport.ErrSilent, nil, ""},
		{transport.ErrRefused, cluster.ErrRefused, ""}, {transport.ErrOther, cluster.ErrOther, ""},
		{&transport.OtherError{Answered: nodeidtest.ID(4)}, cluster.ErrOther, ""},
		{transport.ErrForeign, cluster.ErrForeign, ""}, {transport.ErrPlain, nil, credentials.OtherPlain},
		{transport.ErrSecured, nil, credentials.OwnPlain}, {rules, nil, transport.OtherRules + " 3 and 4"},
		{fmt.Errorf("%w: %w", transport.ErrNoRoute, syscall.EHOSTUNREACH), nil, syscall.EHOSTUNREACH.Error()},
	} {
		got := clusterError(c.err)
		for _, kind := range []error{cluster.ErrRefused, cluster.ErrOther, cluster.ErrForeign} {
			if errors.Is(got, kind) != (kind == c.kind) {
				t.Errorf("%v becomes %v", c.err, got)
			}
		}
		silent, is := errors.AsType[*cluster.SilentError](got)
		if is != (c.why != "") || is && !strings.Contains(silent.Why, c.why) || c.err != nil && !errors.Is(got, c.err) {
			t.Errorf("%v becomes %v, want the reason %q", c.err, got, c.why)
		}
	}
	who, is := errors.AsType[*cluster.OtherError](clusterError(&transport.OtherError{Answered: nodeidtest.ID(4)}))
	if !is || who.Answered != nodeidtest.ID(4) {
		t.Errorf("%+v", who)
	}
	strange := fmt.Errorf("%w: no x509 here", transport.ErrForeign)
	if f, is := errors.AsType[*cluster.ForeignError](clusterError(strange)); !is || f.Why != "no x509 here" {
		t.Errorf("%+v", f)
	}
}
