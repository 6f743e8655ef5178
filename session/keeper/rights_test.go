package keeper

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func granted(t *testing.T, rights ...string) *capability.Capability {
	t.Helper()
	c, err := capability.Build("cron-host", time.Time{}, rights...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sendUnder is like send, on a connection whose certificate has these rights.
func (b *bench) sendUnder(from nodeid.ID, rights *capability.Capability, cmds ...lockfsm.Command) {
	var frame []byte
	for _, c := range cmds {
		frame = c.Append(frame)
	}
	b.core.ReceiveFrom(b.now, Sender{ID: from, Rights: rights}, nil, frame)
}

func (b *bench) openUnder(from nodeid.ID, rights *capability.Capability) lockfsm.SessionID {
	b.t.Helper()
	b.sendUnder(from, rights, lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{from[15], 7}, TTL: benchTTL,
		Record: []byte("r")})
	b.step()
	b.want(from, "opened done")
	id := b.replies[from][0].Session
	b.sendUnder(from, rights, b.attachCmd(id, 1))
	b.step()
	b.want(from, "attached 1 done")
	return id
}

// TestKeysOutsideTheGrantAreRefused checks that the refusal does not end the session.
func TestKeysOutsideTheGrantAreRefused(t *testing.T) {
	t.Parallel()
	rights := granted(t, "lock a/*", "lock one", "read b", "write c", "force d", "read d")
	for _, c := range []struct {
		keys []string
		bad  string
	}{
		{[]string{"a/x"}, ""}, {[]string{"one"}, ""}, {[]string{"a/"}, ""}, {[]string{"a/x", "a/y", "one"}, ""},
		{[]string{"a"}, "a"}, {[]string{"one-more"}, "one-more"}, {[]string{"b"}, "b"}, {[]string{"c"}, "c"},
		{[]string{"d"}, "d"},
		{[]string{"a/x", "b"}, "b"}, {[]string{"a/x", "a/y", "z"}, "z"}, {[]string{"B", "a/x"}, "B"},
	} {
		for _, try := range []bool{false, true} {
			b := leadingBench(t)
			peer := nodeidtest.ID(1)
			id := b.openUnder(peer, rights)
			ask := acquireCmd(id, 1, 1, c.keys[0])
			ask.Keys, ask.Try = c.keys[1:], try
			b.sendUnder(peer, rights, ask, releaseCmd(id, 1, 9))
			b.step()
			refused := false
			for _, r := range b.replies[peer] {
				refused = refused || r.Kind == session.ReplyForbidden && string(r.Key) == c.bad &&
					string(r.Value) == "cron-host" && r.Number == 1
			}
			if held := len(b.machine.Entries()); refused != (c.bad != "") || refused != (held == 0) {
				t.Errorf("%q: told %+v, %d entries", c.keys, b.replies[peer], held)
			}
			if !b.alive(id) {
				t.Errorf("%q: the session has ended", c.keys)
			}
		}
	}
}

func TestASessionBelongsToItsCapability(t *testing.T) {
	t.Parallel()
	a, other := granted(t, "lock a/*"), granted(t, "lock b/*")
	for _, under := range []*capability.Capability{other, nil} {
		b := leadingBench(t)
		peer := nodeidtest.ID(1)
		id := b.openUnder(peer, a)
		if s := b.machine.Sessions(); s[0].Opener.Capability != a.Hash() {
			t.Fatalf("opened as %+v", s[0])
		}
		b.sendUnder(peer, under, b.attachCmd(id, 2))
		b.step()
		b.want(peer, "attached 2 no session")
		b.sendUnder(peer, a, b.attachCmd(id, 3))
		b.step()
		b.want(peer, "attached 3 done")
	}
}

func TestACircleHidesForeignKeys(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	guest, full, rights := nodeidtest.ID(1), nodeidtest.ID(2), granted(t, "lock a/*")
	mine, theirs := b.openUnder(guest, rights), b.open(full)
	b.sendUnder(guest, rights, acquireCmd(mine, 1, 1, "a/1"))
	b.send(full, acquireCmd(theirs, 1, 1, "secret"), acquireCmd(theirs, 1, 2, "a/2"))
	b.step()
	hidden := acquireCmd(theirs, 1, 3, "a/1")
	hidden.Owner = 2
	b.send(full, hidden)
	b.step()
	ask := acquireCmd(mine, 1, 2, "a/2")
	ask.Owner = 1
	b.sendUnder(guest, rights, ask)
	b.step()
	found := false
	for _, r := range b.replies[guest] {
		found = found || r.Kind == session.ReplyDeadlock && len(r.Circle) == 2
	}
	if !found {
		t.Fatalf("no circle: %+v", b.replies[guest])
	}
	shown := shownTo(rights, []lockfsm.Link{{Key: "a/2"}, {Key: "secret", Record: []byte("who")}, {Key: "other"},
		{Key: "a/1"}})
	if text := fmt.Sprint(shown); len(shown) != 3 || strings.Contains(text, "secret") ||
		strings.Contains(text, "other ") || !strings.HasPrefix(shown[2].Key, "2 more outside") {
		t.Errorf("shown: %+v", shown)
	}
	if all := []lockfsm.Link{{Key: "x"}}; len(shownTo(nil, all)) != 1 || shownTo(nil, all)[0].Key != "x" {
		t.Error("a full instance must be shown everything")
	}
}

func TestNotAllowedErrors(t *testing.T) {
	t.Parallel()
	e := &session.NotAllowedError{Verb: "lock", Key: "b", For: "cron-host"}
	if !errors.Is(e, session.ErrNotAllowed) || !strings.Contains(e.Error(), `"cron-host"`) ||
		!strings.Contains(e.Error(), `lock on "b"`) {
		t.Error(e)
	}
	if e := (&session.NotAllowedError{Verb: "root", For: "x"}); !strings.Contains(e.Error(), "root secret") {
		t.Error(e)
	}
}
