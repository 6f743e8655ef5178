package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// This file tests the texts that new users see after typical mistakes. Package console,
// cmd/mortise and the other files of this package test further cases.

func TestMistakesAreNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		n := f.nodes[0]
		soon := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		lock := func(ctx context.Context, key string) error {
			l, err := n.Lock(ctx, key)
			if err == nil {
				unlock(t, l)
			}
			return err
		}
		fields := strings.NewReplacer("SINCE", `since \S+, token \d+`)
		wants := func(what string, err, is error, text string) {
			t.Helper()
			if pattern := "^" + fields.Replace(text) + "$"; err == nil || is != nil && !errors.Is(err, is) ||
				!regexp.MustCompile(pattern).MatchString(err.Error()) {
				t.Errorf("%s:\n got %.300v\nwant %s", what, err, text)
			}
		}
		wants("no key", lock(t.Context(), ""), mortise.ErrBadKey, `mortise: bad key: "": it is empty`)
		wants("a huge key", lock(t.Context(), strings.Repeat("k", 10<<20)), mortise.ErrBadKey,
			`mortise: bad key: "k{64}"\.\.\. \(10485760 bytes\): it has 10485760 bytes, at most 512 are allowed`)
		wants("a line break", lock(t.Context(), "a\nb"), mortise.ErrBadKey,
			`mortise: bad key: "a\\nb": it has a control character`)
		wants("not UTF-8", lock(t.Context(), "\xff"), mortise.ErrBadKey, `mortise: bad key: "\\xff": it is not UTF-8`)
		wants("a nil context", lock(nil, "k"), mortise.ErrBadRequest, //nolint:staticcheck // it is the mistake
			`mortise: bad request: lock "k": the context is nil: pass context\.Background\(\) if you have none`)

		l := f.acquire(0, mortise.Request{Key: "k"})
		wants("waiting for oneself", lock(soon(), "k"), context.DeadlineExceeded,
			`mortise: lock "k": context deadline exceeded `+
				`\(when this request was queued, this instance itself held it, SINCE, and no other request `+
				`was waiting; another call held it, or it was never unlocked; to enter a lock again, `+
				`pass lock\.Context\(ctx\)\)`)
		second := f.later(0, mortise.Request{Key: "k"})
		time.Sleep(time.Second)
		wants("behind another one", lock(soon(), "k"), context.DeadlineExceeded,
			`.*, and 1 other request was waiting; .*`)
		if err := l.Unlock(nil); err != nil { //nolint:staticcheck // it is the mistake
			t.Errorf("Unlock with a nil context: %v", err)
		}
		unlock(t, comes(t, "the second", second))

		shared := f.acquire(0, mortise.Request{Key: "r", Mode: mortise.Shared})
		wants("RLock, then Lock", lock(shared.Context(t.Context()), "r"), nil,
			`mortise: deadlock: node-0 waits for "r", under a shared lock of the same key: `+
				`a shared lock cannot be upgraded; unlock it first, or take the exclusive lock from the beginning`)
		unlock(t, shared)

		permits := f.acquire(0, mortise.Request{Key: "p", Mode: mortise.Permits(3, 3)})
		_, err := n.Acquire(permits.Context(t.Context()), mortise.Request{Key: "p", Mode: mortise.Permits(1, 3)})
		wants("one permit more than there are", err, nil,
			`mortise: deadlock: node-0 waits for "p", under permits of the same key: `+
				`unlock them first, or ask for all permits at once`)
		unlock(t, permits)

		rich := f.acquire(0, mortise.Request{Key: "rich", LockDelay: time.Second, Value: "v",
			Labels: map[string]string{"job": "nightly"}})
		poor := f.acquire(0, mortise.Request{Key: "poor"})
		for field, r := range map[string]mortise.Request{
			"LockDelay": {Key: "rich", LockDelay: time.Minute}, "Notice": {Key: "rich", Notice: true},
			"Value":  {Key: "rich", Value: "w"},
			"Labels": {Key: "poor", Labels: map[string]string{"job": "nightly"}},
		} {
			hold := map[string]*mortise.Lock{"rich": rich, "poor": poor}[r.Key]
			_, err := n.Acquire(hold.Context(t.Context()), r)
			wants("another "+field, err, mortise.ErrBadRequest,
				fmt.Sprintf(`mortise: bad request: Request\.%s: lock "%s" is entered again under its own context, `+
					`and its first request asked for another %s: set it there, or leave it out here`, field, r.Key, field))
		}
		unlock(t, rich)
		unlock(t, poor)

		late := f.acquire(0, mortise.Request{Key: "late", MaxHold: time.Minute, LockDelay: time.Second})
		<-late.Done()
		wants("an end by MaxHold", late.Err(), mortise.ErrLost,
			`mortise: the lock was lost: it was held for as long as its request allows`)
		time.Sleep(2 * time.Second)
		ends, err := n.Audit(t.Context())
		if err != nil || len(ends) != 2 || ends[0].Kind != mortise.EventLeft ||
			ends[0].Cause != mortise.OutcomeExpired || ends[1].Kind != mortise.EventFreed {
			t.Fatalf("%+v, %v", ends, err)
		}
		wants("its line in the audit", errors.New(ends[0].Reason), nil,
			`it was held for 1m0s, the longest that its request allows, and its holder had not unlocked it`)

		err = n.Do(t.Context(), "k", func(ctx context.Context, token mortise.Token) error {
			if _, err := n.ForceUnlock(t.Context(), "k", token, "a test"); err != nil {
				return err
			}
			<-ctx.Done()
			return fmt.Errorf("charging: %w", context.Cause(ctx))
		})
		wants("a lock that is lost in Do", err, mortise.ErrLost,
			`charging: mortise: the lock was ended by force on node-0: a test`)

		f.acquire(0, mortise.Request{Key: "forgotten/1"})
		f.acquire(0, mortise.Request{Key: "forgotten/2", Also: []mortise.Part{{Key: "forgotten/3"}}})
		wants("Leave with locks", n.Leave(soon()), context.DeadlineExceeded,
			`mortise: left with locks that were not unlocked; they expire with the session: `+
				`"forgotten/1", "forgotten/2": context deadline exceeded`)
	})
}

func TestMistakesOfAClusterAreNamed(t *testing.T) {
	slow.UnderRace(t)
	const addr = `10\.0\.0\.\d:7947`
	three := func(c *mortise.Config) { c.Founders, c.Replicas = []string{"n1", "n2", "n3"}, 0 }
	oneName := func(c *mortise.Config) { c.Name = "orders" }
	for what, c := range map[string]struct {
		change func(*mortise.Config)
		waits  string
	}{
		"Founders that match no instance": {three,
			`this instance is not one of the Founders: it joins as soon as it meets a member of a group that has a leader; ` +
				`it has met none of them \("n1", "n2", "n3"\), and sees "node-[12]" \(ADDR\), "node-[12]" \(ADDR\): ` +
				`to let these found the group, list the Name of each \(the host name by default\) in Founders, ` +
				`and that of this one \("node-0"\) too`},
		"one Name and Replicas": {oneName,
			`founding waits: the instances at ADDR and ADDR are both called "orders": give each instance a Name of its own`},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t)
				for i := range 3 {
					config := f.config(i, 3)
					c.change(&config)
					f.start(i, config)
				}
				time.Sleep(10 * time.Second)
				waits := strings.ReplaceAll(c.waits, "ADDR", addr)
				if s := f.nodes[0].Status(); !regexp.MustCompile("^" + waits + "$").MatchString(s.Waiting) {
					t.Errorf("Status says\n%s, want\n%s", s.Waiting, waits)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := f.nodes[0].Lock(ctx, "k")
				if want := `^mortise: lock "k": context deadline exceeded \(` + waits +
					`\)$`; !errors.Is(err, context.DeadlineExceeded) ||
					!regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("Lock says\n%v, want\n%s", err, want)
				}
			})
		})
	}
	t.Run("a second instance of one Name, later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3)
			second := f.config(3, 3)
			second.Name = "node-1"
			f.start(3, second)
			time.Sleep(time.Minute)
			for i, at := range map[int]string{1: address(3), 3: address(1)} {
				want := `"node-1" is the name of another instance too, at ` + at +
					`: only one of the two can vote; give each instance a Name of its own`
				if s := f.nodes[i].Status(); s.Namesake != want {
					t.Errorf("Status says\n%s, want\n%s", s.Namesake, want)
				}
			}
		})
	})
	t.Run("a restart with the directory", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			var first, again lines
			root := t.TempDir()
			f := newFleet(t)
			begin := func(log *lines) {
				for i := range 3 {
					config := durableConfig(f, root, i, i)
					config.Logger = slog.New(slog.NewTextHandler(log, nil))
					f.start(i, config)
				}
				f.ready()
			}
			begin(&first)
			if n := len(first.matching("the group is founded")); n == 0 {
				t.Error("no instance logs that the group is founded: this test would pass whatever is logged")
			}
			for i := range 3 {
				f.crash(i)
			}
			begin(&again)
			if born := again.matching("the group is founded"); len(born) > 0 {
				t.Errorf("after a restart with the directories it logs %q", born)
			}
		})
	})
}
