package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestVersionNamesTheBuild(t *testing.T) {
	var out bytes.Buffer
	if Main(t.Context(), []string{"version"}, &out, &out); !strings.HasPrefix(out.String(),
		"mortise "+mortise.Version()+", ") || !strings.Contains(out.String(), " go1.") {
		t.Errorf("version prints %s", out.String())
	}
	b := buildOf(&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"},
		{Key: "vcs.modified", Value: "true"}}}, true)
	if b.Revision != "0123456789ab" || !b.Modified {
		t.Errorf("%+v", b)
	}
}

// Events are printed with a date and in UTC, because a watch can run for days, and the machines of
// a cluster may be in different time zones.
func TestEventsHaveDates(t *testing.T) {
	at := time.Date(2026, 11, 24, 1, 2, 3, 4, time.FixedZone("east", 2*3600))
	e := mortise.Event{Kind: mortise.EventLeft, Part: mortise.Part{Key: "k"}, Hold: mortise.Hold{Holder: "n1",
		Token: 7}, At: at}
	if got, want := eventLine(e), "2026-11-23 23:02:03Z  left   k  n1  token 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.At = time.Time{}
	if got, want := eventLine(e), "                      left   k  n1  token 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
