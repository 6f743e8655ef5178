package keeper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file tests the rights of a keeper together with the state machine.

// TestAnotherSecretCannotUseASession checks a peer with two connections, each with a secret of its
// own: a session is used only under the secret under which it was opened.
func TestAnotherSecretCannotUseASession(t *testing.T) {
	t.Parallel()
	a := granted(t, "lock a/*")
	for _, other := range []*capability.Capability{granted(t, "lock a/*", "lock b/*"), nil} {
		b := leadingBench(t)
		peer := nodeidtest.ID(1)
		id := b.openUnder(peer, a)
		b.sendUnder(peer, a, acquireCmd(id, 1, 1, "a/1"))
		b.step()
		for _, c := range []lockfsm.Command{acquireCmd(id, 1, 2, "a/2"), acquireCmd(id, 1, 2, "b/2"),
			releaseCmd(id, 1, 1), {Kind: lockfsm.Close, Session: id, Epoch: 1}, {Kind: lockfsm.Leaving, Session: id, Epoch: 1},
			{Kind: lockfsm.Detach, Session: id, Epoch: 1, Number: 1}} {
			b.sendUnder(peer, other, c)
			b.step()
			b.want(peer, "ended 1 unknown")
		}
		renewal := session.Renewal{Session: id, Epoch: 1, Seq: 1}.Append(nil)
		b.core.ReceiveFrom(b.now, Sender{ID: peer, Rights: other}, renewal, nil)
		b.step()
		b.want(peer, "ended 1 unknown")
		if e := b.machine.Entries(); len(e) != 1 || e[0].Token == 0 {
			t.Errorf("the entries are %+v", e)
		}
		b.sendUnder(peer, a, releaseCmd(id, 1, 1))
		b.step()
		if e := b.machine.Entries(); len(e) != 0 {
			t.Errorf("its own secret: %+v, replies %+v", e, b.replies[peer])
		}
	}
}

// TestARefusedResumptionIsTold checks that a guest learns which right is missing, and no key of the
// hold.
func TestARefusedResumptionIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  lockfsm.Code
	}{
		{[]string{"lock a"}, lockfsm.NotAllowed}, {[]string{"lock a", "lock b"}, lockfsm.NotForced},
	} {
		b := leadingBench(t)
		holder, guest, rights := nodeidtest.ID(1), nodeidtest.ID(2), granted(t, c.words...)
		id := b.open(holder)
		both := acquireCmd(id, 1, 1, "a")
		both.Keys = []string{"b"}
		b.send(holder, both)
		b.step()
		token := b.machine.Entries()[0].Token
		mine := b.openUnder(guest, rights)
		ask := acquireCmd(mine, 1, 1, "a")
		ask.Token = token
		b.sendUnder(guest, rights, ask)
		b.step()
		told := b.replies[guest]
		if len(told) != 1 || told[0].Kind != session.ReplyForbidden || told[0].Code != c.want || len(told[0].Key) != 0 ||
			string(told[0].Value) != "cron-host" || told[0].Number != 1 {
			t.Errorf("%q: told %+v", c.words, told)
		}
		if !b.machine.Holds("b", token) {
			t.Errorf("%q: the hold has changed", c.words)
		}
	}
}

// TestNoEntryOutsideTheRights lets several peers send any commands under any secrets, also those of
// sessions of each other. No session ever has an entry of a key that its secret does not grant.
func TestNoEntryOutsideTheRights(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	entries := 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		b := leadingBench(t)
		secrets := []*capability.Capability{nil, granted(t, "lock a"), granted(t, "lock a", "lock b"),
			granted(t, "lock b*", "read *", "force *"), granted(t, "member"), granted(t, "lock *", "force a", "read a")}
		granting := map[[32]byte]*capability.Capability{}
		for _, c := range secrets {
			granting[c.Hash()] = c
		}
		keys := []string{"a", "b", "bc", "d"}
		for range 150 {
			peer := nodeidtest.ID(1 + r.Uint64N(3))
			rights := secrets[r.IntN(len(secrets))]
			c := randomCommand(r, b, keys)
			for _, s := range b.machine.Sessions() {
				if s.ID == c.Session && s.Opener.Instance != (nodeid.ID{}) && r.IntN(4) > 0 {
					peer, rights = nodeid.ID(s.Opener.Instance), granting[s.Opener.Capability]
				}
			}
			b.sendUnder(peer, rights, c)
			if r.IntN(3) > 0 {
				b.step()
			}
			if err := b.machine.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			openers := map[lockfsm.SessionID]lockfsm.Opener{}
			for _, s := range b.machine.Sessions() {
				openers[s.ID] = s.Opener
			}
			for _, e := range b.machine.Entries() {
				entries++
				if c := granting[openers[e.Session].Capability]; !c.Allows(capability.Lock, e.Key) {
					t.Fatalf("seed %d: a session with %v has an entry of %q", seed, c, e.Key)
				}
			}
		}
	}
	if entries < int(10*seeds) {
		t.Errorf("only %d entries were looked at", entries)
	} else {
		t.Logf("looked at %d entries", entries)
	}
}

// randomCommand returns a command of any session, mostly with what its client knows.
func randomCommand(r *rand.Rand, b *bench, keys []string) lockfsm.Command {
	all := b.machine.Sessions()
	if len(all) == 0 || r.IntN(6) == 0 {
		return lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1 + byte(r.IntN(12))}, TTL: benchTTL,
			Rights: fmt.Sprint("mortise-capability/1\nfor x\nlock ", keys[r.IntN(4)], "\n"),
			Opener: lockfsm.Opener{Instance: nodeid.ID{1}}}
	}
	s := all[r.IntN(len(all))]
	c := lockfsm.Command{Session: s.ID, Epoch: s.Epoch, Number: lockfsm.Number(1 + r.IntN(40))}
	switch n := r.IntN(12); {
	case n < 3:
		c.Kind, c.Epoch, c.Nonce, c.Number = lockfsm.Attach, s.Epoch+1, s.Nonce, 1+lockfsm.Number(r.IntN(40))
		if s.Gone {
			c.Nonce = lockfsm.Nonce{1}
		}
	case n < 8:
		c.Kind, c.Key = lockfsm.Acquire, keys[r.IntN(4)]
		if some := b.machine.Entries(); len(some) > 0 && r.IntN(2) == 0 {
			c.Token, c.Key = max(some[r.IntN(len(some))].Token, 1), some[r.IntN(len(some))].Key
			break
		}
		more := slices.Clone(keys)
		more = slices.DeleteFunc(more, func(key string) bool { return key <= c.Key || r.IntN(2) == 0 })
		c.Keys, c.Mode, c.Delay = more, lockfsm.Mode(r.Uint32N(2)), time.Duration(r.IntN(2))*time.Second
	case n < 9:
		c.Kind = lockfsm.Release
	case n < 10:
		c.Kind = lockfsm.Detach
	case n < 11:
		c.Kind = lockfsm.Cancel
	default:
		c.Kind = lockfsm.Close
	}
	return c
}
