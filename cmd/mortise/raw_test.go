//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// nasty contains characters that clear a terminal, begin a new line, ring the bell, and change the
// direction of writing.
const nasty = "x\x1b[2J\r\n\a\u009b\u202ey"

// nothingRaw fails the test if the output contains control characters, or if a line begins with a
// text from another process.
func nothingRaw(t *testing.T, what, text string) {
	t.Helper()
	if text == "" || plain.Lines(text) != text {
		t.Errorf("%s: %q", what, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\\u{7}") || strings.HasPrefix(line, "FORGED") {
			t.Errorf("%s: a text of another process begins a line: %q", what, text)
		}
	}
}

// told is what a command prints. It ends a command that has told of something.
type told struct {
	text bytes.Buffer
	of   string
	stop func()
}

func (b *told) Write(text []byte) (int, error) {
	if b.stop != nil && bytes.Contains(text, []byte(b.of)) {
		b.stop()
	}
	return b.text.Write(text)
}

func TestNothingIsPrintedRaw(t *testing.T) {
	const key = "k\u202e\u2066'\\z" // a key cannot contain control characters
	node, err := mortise.Start(t.Context(), mortise.Config{Name: "n", Bind: "127.0.0.1:0", Grace: -1,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := node.Put(ctx, key, []byte(nasty), 0); err != nil {
		t.Fatal(err)
	}
	lock, err := node.Acquire(ctx, mortise.Request{Key: key, Value: nasty})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.UnlockSoon()
	waiting, give := context.WithCancel(ctx)
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		_, _ = node.Acquire(waiting, mortise.Request{Key: key, Value: nasty})
	}()
	defer func() { give(); <-waits }()
	for info, err := node.Peek(ctx, key); info.Waiting == 0; info, err = node.Peek(ctx, key) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"ls"}, {"ls", "-o", "json"}, {"get", key}, {"get", "-o", "json", key}, {"top", "-count", "1"},
		{"top", "-count", "1", "-o", "json"}, {"top", "-count", "1", key}, {"doctor"}, {"doctor", key},
		{"doctor", "-o", "json", key}, {"watch"}, {"watch", "-o", "json"}, {"status"}, {"members"}, {"get", nasty},
		{nasty}, {"run", "-n", key, "--", "true"}, {"unlock", "--force", key, "--token", "1", "--reason", nasty},
		{"unlock", "--force", key, "--token", "1", "--reason", "r"}, {"recover", nasty},
	} {
		running, stop := context.WithCancel(ctx)
		var out told
		if args[0] == "watch" { // it tells what is so, and would then wait for events
			out.of, out.stop = "held", stop
		}
		Main(running, append(args[:1:1], append([]string{"-join", node.Status().Address}, args[1:]...)...), &out, &out)
		stop()
		nothingRaw(t, fmt.Sprintf("%q", args), out.text.String())
		if strings.Contains(out.text.String(), "there is no command ls") || args[0] == "get" && args[len(args)-1] == key &&
			args[1] != "-o" && !strings.Contains(out.text.String(),
			`mortise unlock --force $'k\xe2\x80\xae\xe2\x81\xa6\x27\x5cz'`) {
			t.Errorf("%q: %s", args, out.text.String())
		}
	}
}

func TestHostileAnswersAreNotPrintedRaw(t *testing.T) {
	const forged = "\nFORGED\x1b[1A\u202e"
	member := mortise.Member{Name: forged, Instance: forged, Address: forged, Zone: forged, Version: forged,
		Votes: true}
	s := &mortise.Status{
		Member: mortise.Member{Name: forged, Instance: forged, Address: forged, Version: forged}, Joined: true, Group: forged,
		Leader: forged, Voters: []mortise.Member{member}, Waiting: forged,
		Lease: forged,
	}
	health := &mortise.Health{
		Leader: forged, Missing: []mortise.MissingVoter{{Member: mortise.Member{Name: forged, Instance: forged}}},
		CannotLose: []string{forged}, Change: forged, Differs: []string{forged}, Advice: forged, Due: true,
	}
	answered := guest.Report{Addr: "a:1", From: forged, Outcome: guest.Answered, Status: s}
	answered.Answer = &query.HereAnswer{Failed: forged, Founders: []string{forged}}
	silent := guest.Report{Addr: forged, From: forged, Outcome: guest.Silent, Err: errors.New(forged)}
	for name, f := range map[string]facts{
		"led":      {reports: []guest.Report{answered, silent}, health: health},
		"headless": {reports: []guest.Report{answered, silent}},
		"silent":   {reports: []guest.Report{silent}, lookups: []error{errors.New(forged)}},
	} {
		var out bytes.Buffer
		c := &call{out: &out, errs: &out}
		c.tellDiagnosis(diagnose(f), f)
		key := mortise.KeyInfo{Key: forged, Held: 1, Waiting: 1,
			Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: forged, Value: forged, Token: 7},
				Also: []mortise.Part{{Key: forged, Tree: true}}}}}
		waiting := key
		waiting.Queue = []mortise.Standing{{Hold: mortise.Hold{Holder: forged}, Also: []mortise.Part{{Key: forged}}}}
		err := errors.Join(c.tellKeys([]hot{{KeyInfo: key}, {KeyInfo: waiting}}, f),
			c.table(keyHeading, [][]string{keyRow(key, time.Now()), standingRow(0, key.Queue[0], time.Now())}),
			c.tellEvent(mortise.Event{Kind: forged, Part: mortise.Part{Key: forged},
				Hold: mortise.Hold{Holder: forged}, By: forged, Reason: forged,
				Cause: forged, Data: []byte(forged)}), c.show(s), c.show(health), c.printf("%v\n", health))
		if err != nil {
			t.Error(err)
		}
		nothingRaw(t, name, out.String())
	}
	var listed bytes.Buffer
	c := &call{out: &listed, errs: &listed}
	member.For, member.Tier, member.Session = forged, forged, forged
	for _, r := range [][]guest.Report{{answered, silent}, {silent}} {
		if err := errors.Join(c.tellLastMembers(r, errors.New(forged)),
			c.tellMembers(memberList{members: []mortise.Member{member}, next: forged})); err != nil {
			t.Error(err)
		}
	}
	nothingRaw(t, "members", listed.String())
	var out bytes.Buffer
	report(&out, "ls", errors.Join(&mortise.ForcedError{By: forged, Reason: forged},
		&mortise.HeldError{Key: forged, Hold: mortise.Hold{Holder: forged}}))
	report(&out, "ls", errors.New("of a package that escapes nothing: \x1b[2J\r\u202e"))
	nothingRaw(t, "error", out.String())
}
