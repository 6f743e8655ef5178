//go:build unix

package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
)

// keepLock acquires a kept lock on the node of the agent. It waits until the group has the rules
// for it.
func (i *inn) keepLock(key string) (*mortise.Lock, mortise.Standing) {
	i.t.Helper()
	for until := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) {
		l, err := i.node.LockSticky(i.t.Context(), key, mortise.StickyOptions{})
		if err != nil {
			i.t.Fatal(err)
		}
		k, err := i.node.Peek(i.t.Context(), key)
		if err != nil || len(k.Queue) != 1 || time.Now().After(until) {
			i.t.Fatalf("no lock is kept: %+v, %v", k, err)
		}
		if k.Queue[0].Kept {
			return l, k.Queue[0]
		}
		if err := l.Unlock(i.t.Context()); err != nil {
			i.t.Fatal(err)
		}
	}
}

// TestCheckOfAKeptLock checks that an agent, with its own rights and with those of a program, does
// not deny the token of a caller of a kept lock.
func TestCheckOfAKeptLock(t *testing.T) {
	i := openInn(t, nil, standard)
	l, s := i.keepLock("a/1")
	for name, secret := range map[string]string{"the agent": "", "a program": secretFor(t, "one", "read a/*")} {
		code, p := i.post(secret, "/v1/check", object{"key": "a/1", "token": l.Token()}, nil)
		if code != http.StatusConflict || p.Kind != "kept" || !strings.Contains(p.Error, "agent keeps lock") {
			t.Errorf("%s: %d %+v", name, code, p)
		}
		var said struct {
			Queue []struct{ Kept bool }
		}
		if code, p := i.get(secret, "/v1/key?key=a/1", &said); code != http.StatusOK || !said.Queue[0].Kept {
			t.Errorf("%s: %d %+v %+v", name, code, said, p)
		}
		var held struct{ Held bool }
		for token, want := range map[mortise.Token]bool{s.Token: true, s.Token - 1: false} {
			if code, p := i.post(secret, "/v1/check", object{"key": "a/1", "token": token}, &held); code != http.StatusOK ||
				held.Held != want {
				t.Errorf("%s, token %d: %d %v %+v", name, token, code, held, p)
			}
		}
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnsearchedRequestsAreShown(t *testing.T) {
	for _, unsearched := range []bool{true, false} {
		s := mortise.Standing{Hold: mortise.Hold{Holder: "a"}, WaitsFor: 3, Unsearched: unsearched}
		want := map[bool]string{true: "waits for 3, the search for a deadlock goes on", false: "waits for 3"}[unsearched]
		if state := standingRow(4, s, time.Now())[3]; state != want {
			t.Errorf("%q, want %q", state, want)
		}
	}
}

// TestKeptLocksAreShown checks that ls, get and doctor distinguish a kept lock from a held one.
func TestKeptLocksAreShown(t *testing.T) {
	now := time.Now()
	for _, kept := range []bool{true, false} {
		k := mortise.KeyInfo{Key: "k", Held: 1, Waiting: 1, Queue: []mortise.Standing{
			{Hold: mortise.Hold{Holder: "b", Session: "7", Token: 1, Since: now.Add(-time.Hour), Kept: kept}},
			{Hold: mortise.Hold{Holder: "a"}, WaitsFor: 0}}}
		var out bytes.Buffer
		c := &call{out: &out, errs: &out}
		f := facts{reports: []guest.Report{
			instance("b", func(r *guest.Report) { r.Status.Sessions = []string{"7"} })}}
		keys := []hot{{KeyInfo: k, HeldFor: time.Hour}}
		if err := c.tellKeys(keys, f); err != nil {
			t.Fatal(err)
		}
		d := &diagnosis{Well: true}
		d.stuck(f, keys)
		for what, texts := range map[string][2]string{ // if kept, and otherwise
			keyRow(k, now)[1]:                    {"b (keeps it)", "b"},
			standingRow(0, k.Queue[0], now)[3]:   {"keeps", "holds"},
			strings.Split(out.String(), "\n")[1]: {"  k: b keeps it for 1h", "  k: b holds it for 1h"},
			d.Problem:                            {"b has kept k for 1h", "b has held k for 1h"},
			holderFate(k.Queue[0], f).text: {"b answers and renews its lease: its process is alive, and gives the lock back",
				"b answers and renews its lease: its process is alive, and its code has not unlocked"},
		} {
			want := texts[1]
			if kept {
				want = texts[0]
			}
			if !strings.HasPrefix(what, want) || !kept && strings.Contains(what, "keep") {
				t.Errorf("kept is %v: %q, want %q", kept, what, want)
			}
		}
	}
}
