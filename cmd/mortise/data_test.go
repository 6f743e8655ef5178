//go:build unix

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
)

func TestDataOnTheCommandLine(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	f.mortise("data", "get", "k").wants(t, exitNo, "has no data")
	f.mortise("data", "put", "k", "one").wants(t, exitOK, "3 bytes at revision ")
	if s := f.mortise("data", "get", "k").wants(t, exitOK); s.out != "one" {
		t.Errorf("%q was put as one", s.out)
	}
	revision := func() string {
		var d dataShown
		s := f.mortise("data", "get", "-o", "json", "k").wants(t, exitOK)
		if err := json.Unmarshal([]byte(s.out), &d); err != nil {
			t.Fatal(err)
		}
		return strconv.FormatUint(d.Revision, 10)
	}
	first := revision()
	cmd := f.command("data", "put", "k", "-revision", first)
	cmd.Stdin = strings.NewReader("two\x1b\n")
	f.finish(cmd).wants(t, exitOK)
	if s := f.mortise("data", "get", "k").wants(t, exitOK); s.out != "two\x1b\n" {
		t.Errorf("%q was put from standard input", s.out)
	}
	f.mortise("data", "put", "k", "three", "-revision", first).wants(t, exitNo, "is at revision", "nothing was changed")
	f.mortise("data", "put", "k", "three", "-revision", "0").wants(t, exitNo, "nothing was changed")
	f.mortise("data", "rm", "k", "-revision", first).wants(t, exitNo, "nothing was changed")
	if s := f.mortise("data", "get", "k").wants(t, exitOK); s.out != "two\x1b\n" {
		t.Errorf("a conflict has put %q", s.out)
	}
	f.mortise("data", "rm", "k", "-revision", revision()).wants(t, exitOK, "has no data now")
	f.mortise("data", "get", "k").wants(t, exitNo)
	f.mortise("data", "put", "k", "four", "-revision", "0", "-o", "json").wants(t, exitOK, `"revision":"`)
	f.mortise("data", "rm", "k").wants(t, exitOK)

	for _, wrong := range [][]string{
		{"data"}, {"data", "get"}, {"data", "look", "k"}, {"data", "get", "k", "x"}, {"data", "rm", "k", "x"},
		{"data", "put", "k", "a", "b"},
		{"data", "put", "k", ""}, {"data", "put", "k", strings.Repeat("x", 4097)},
		{"data", "get", "k", "-revision", "1"},
		{"data", "put", "k", "x", "-revision", "one"}, {"data", "get", ""},
	} {
		f.mortise(wrong...).wants(t, exitUsage)
	}
	f.agents[0].kill()
	f.mortise("data", "put", "-timeout", "300ms", "k", "x", "-revision", "0").wants(t, exitNotReady)
}

func TestDataTakesRights(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	with := func(rights ...string) *fleet {
		c, err := capability.Build("cron-host", time.Time{}, rights...)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := credentials.DeriveSecret(testSecret, "mortise", c.Text())
		if err != nil {
			t.Fatal(err)
		}
		other := f.in(t)
		other.common = append(other.common[:len(other.common):len(other.common)], "SECRET="+secret)
		return other
	}
	writes, locks := with("write cron/*"), with("lock cron/*")
	writes.mortise("data", "put", "cron/1", "x").wants(t, exitOK)
	if s := locks.mortise("data", "get", "cron/1").wants(t, exitOK); s.out != "x" {
		t.Errorf("%q", s.out)
	}
	locks.mortise("data", "put", "cron/1", "y").wants(t, exitDenied, "not allowed")
	locks.mortise("data", "rm", "cron/1").wants(t, exitDenied, "not allowed")
	writes.mortise("data", "put", "other", "x", "-revision", "0").wants(t, exitDenied, "not allowed")
	writes.mortise("data", "get", "other").wants(t, exitDenied, "not allowed")
	locks.mortise("sessions").wants(t, exitDenied, "not allowed")
	locks.mortise("ping", "-n", "1", "cron/").wants(t, exitOK)
	locks.mortise("ping", "-n", "1").wants(t, exitDenied, "not allowed")
}
