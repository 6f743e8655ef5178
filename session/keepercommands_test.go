package session

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

func TestSilentUntilItsFirstEntryIsAppliedAndBorn(t *testing.T) {
	t.Parallel()
	b := newKeeperBench(t, 0)
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, TTL: benchTTL}
	silent := func(when string) {
		t.Helper()
		b.send(1, open, attachCmd(3, 1))
		b.renew(1, 3, 1, 1)
		b.core.Confirmed(b.now, b.term, 1)
		b.turn()
		if b.said(1) != "" || len(b.kinds) != 0 || b.round != 0 {
			t.Fatalf("%s: told %q, proposed %v", when, b.said(1), b.kinds)
		}
	}
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: Target{9, "self"}})
	silent("before its first entry")
	b.core.Applied(b.now, []lockfsm.Result{{Kind: lockfsm.Open, Code: lockfsm.Done, Session: 3, TTL: benchTTL}})
	b.leads()
	silent("before Born")
	b.core.ProposeBorn(b.now, 5)
	b.step()
	b.want(1, "redirect 5 9") // whoever has asked is invited
	b.send(1, open)
	b.step()
	b.want(1, "opened done")
}

func TestFollowersRedirectAndTellAskersLater(t *testing.T) {
	t.Parallel()
	b := newKeeperBench(t, 0)
	b.renew(1, 3, 1, 1)
	b.send(1, attachCmd(3, 1))
	b.turn()
	b.want(1, "redirect 0 0")
	b.core.Role(b.now, Role{Term: 4, Leader: Target{2, "two"}})
	b.turn()
	b.want(1, "redirect 4 2")
	if string(b.replies[1][0].addr) != "two" {
		t.Errorf("address %q", b.replies[1][0].addr)
	}
	b.core.Role(b.now, Role{Term: 5})
	b.turn()
	b.want(1, "") // it has been told, and has not asked again
	b.send(1, attachCmd(3, 2))
	b.turn()
	b.want(1, "redirect 5 0")
	b.core.Down(b.now, 1)
	b.core.Role(b.now, Role{Term: 5, Leader: Target{3, "three"}})
	b.turn()
	b.want(1, "")
	if s := b.core.Status(); s.Peers+s.Askers != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

func TestAskersAreBounded(t *testing.T) {
	t.Parallel()
	b := newKeeperBench(t, 0)
	for p := range Peer(3 * maxAskers) {
		b.send(p+1, attachCmd(3, 1))
	}
	b.turn()
	if s := b.core.Status(); s.Askers != maxAskers || s.Peers != 0 {
		t.Errorf("%+v", s)
	}
	b.core.Role(b.now, Role{Term: 4, Leader: Target{2, "two"}})
	b.turn()
	b.want(1, "")
	b.want(3*maxAskers, "redirect 4 2")
}

// Bytes pass unchanged, one blob per turn, the wall clock first.
func TestOneBlobPerTurn(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(1), b.open(2)
	var all []byte
	for i := range lockfsm.Number(5) {
		for p, id := range map[Peer]lockfsm.SessionID{1: one} {
			frame := releaseCmd(id, 1, i+1).Append(acquireCmd(id, 1, i+1, "x").Append(nil))
			all = append(all, frame...)
			b.core.Receive(b.now, p, nil, frame)
		}
	}
	frame := acquireCmd(two, 1, 1, "x").Append(nil)
	b.core.Receive(b.now, 2, nil, frame)
	all = append(all, frame...)
	b.core.Tick(b.now)
	term, blob := b.core.Proposal(4321)
	stamp := lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 4321}.Append(nil)
	if term != 5 || !bytes.Equal(blob, append(stamp, all...)) {
		t.Fatalf("term %d, blob %x, want %x", term, blob, all)
	}
	b.core.Proposed(true)
	if _, again := b.core.Proposal(0); again != nil {
		t.Fatal("proposed twice")
	}
}

func TestBlobIsBounded(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(1)
	n := lockfsm.Number(1)
	total := 0
	for range 30 {
		var frame []byte
		for len(frame) < 100_000 {
			frame = acquireCmd(id, 1, n, "some key of some length").Append(frame)
			n++
		}
		total += len(frame)
		b.core.Receive(b.now, 1, nil, frame)
	}
	got := 0
	for range 10 {
		if b.turn(); len(b.blob) > blobBytes+200_000 {
			t.Fatalf("a blob of %d bytes", len(b.blob))
		}
		got += len(b.blob)
		if len(b.core.queue) > 0 && b.core.Next() != b.now {
			t.Fatal("the rest is not due at once")
		}
		b.blob = nil
	}
	if got < total || b.core.queued != 0 {
		t.Fatalf("%d bytes proposed of %d", got, total)
	}
}

func TestOnlyTheAttachedMaySpeak(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(1)
	for name, c := range map[string]struct {
		from Peer
		cmd  lockfsm.Command
	}{
		"another peer":    {2, acquireCmd(id, 1, 1, "x")},
		"an older epoch":  {1, acquireCmd(id, 0, 1, "x")},
		"a later epoch":   {1, acquireCmd(id, 2, 1, "x")},
		"another session": {1, acquireCmd(id+1, 1, 1, "x")},
		"close":           {2, lockfsm.Command{Kind: lockfsm.Close, Session: id, Epoch: 1}},
		"leaving":         {2, lockfsm.Command{Kind: lockfsm.Leaving, Session: id, Epoch: 1}},
	} {
		b.send(c.from, c.cmd, c.cmd, c.cmd)
		b.turn()
		if len(b.kinds) != 0 || b.said(c.from) != fmt.Sprintf("ended %d unknown", c.cmd.Epoch) {
			t.Errorf("%s: proposed %v, told %q", name, b.kinds, b.said(c.from))
		}
	}
	b.send(1, acquireCmd(id, 1, 1, "x"))
	b.step()
	b.want(1, "state 1 granted")
}

// What no client may send ends the sender's attachments and is never proposed; nobody else is harmed.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	kinds := []lockfsm.Kind{lockfsm.Stamp, lockfsm.Born, lockfsm.EndGrace, lockfsm.Raise, lockfsm.Expire}
	var frames [][]byte
	for _, kind := range kinds {
		frames = append(frames, lockfsm.Command{Kind: kind, Session: 1, Term: 5, Version: 9}.Append(nil))
	}
	frames = append(frames, []byte{0xff}, []byte{5, 1, 2, 3, 4, 5}, bytes.Repeat([]byte{0x80}, 40))
	for i, bad := range frames {
		b := leadingBench(t)
		one, two := b.open(1), b.open(2)
		b.core.Receive(b.now, 1, nil, append(acquireCmd(one, 1, 1, "x").Append(nil), bad...))
		b.turn()
		for _, kind := range b.kinds[min(1, len(b.kinds)):] {
			if kind != "acquire" {
				t.Errorf("frame %d: proposed %v", i, b.kinds)
			}
		}
		b.want(1, "ended 1 refused")
		b.send(2, acquireCmd(two, 1, 1, "y"))
		b.step()
		b.want(2, "state 1 granted")
	}
	b := leadingBench(t)
	b.open(1)
	b.core.Receive(b.now, 1, []byte{0xff, 0xff}, nil)
	b.turn()
	b.want(1, "ended 1 refused")
	b.core.Receive(b.now, 0, []byte{1, 1, 1}, []byte{1})
	b.turn()
}

func TestHostileAmountsAreBounded(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(1)
	var many []byte
	for range frameRenewals + 1 {
		many = renewal{id, 1, 1}.append(many)
	}
	b.core.Receive(b.now, 1, many, nil)
	b.turn()
	b.want(1, "ended 1 refused")

	for i := range 3 * peerAttachments {
		b.send(2, attachCmd(lockfsm.SessionID(1000+i), 1))
	}
	if n := b.core.Status().Attachments; n != peerAttachments {
		t.Errorf("%d attachments of one peer", n)
	}
	for i := range 3 * peerOpens {
		b.send(3, lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{3, byte(i), byte(i >> 8)}, TTL: benchTTL})
	}
	if n := b.core.Status().Opens; n != peerOpens {
		t.Errorf("%d opens of one peer", n)
	}
	b.turn()
	b.attach(1, id, 2)
	frame := acquireCmd(id, 2, 1, "x").Append(nil)
	for len(frame) < 1<<20 {
		frame = append(frame, frame...)
	}
	for range 20 {
		b.core.Receive(b.now, 1, nil, frame)
	}
	if b.core.queued > peerBytes {
		t.Errorf("%d bytes of one peer wait", b.core.queued)
	}
	b.turn()
	if got := b.said(1); got != "ended 2 overloaded, ended 2 unknown" {
		t.Errorf("told %q", got)
	}
}

func TestDuplicateOpenIsProposedOnce(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{7}, TTL: benchTTL}
	b.send(1, open)
	b.send(1, open)
	b.send(2, open)
	b.turn()
	if len(b.kinds) != 2 {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.apply()
	b.turn()
	b.want(1, "")
	b.want(2, "opened done") // who asked last
	id := b.replies[2][0].session
	b.send(2, open) // the answer was lost
	b.step()
	b.want(2, "opened done")
	if b.replies[2][0].session != id {
		t.Error("another session for the same nonce")
	}
	if s := b.core.Status(); s.Opens+s.Peers != 0 || s.Sessions != 1 {
		t.Errorf("left behind: %+v", s)
	}
}

// A leader that drops one command of an attachment ends the attachment.
func TestRefusedProposalEndsItsAttachments(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(1), b.open(2)
	b.send(1, acquireCmd(one, 1, 1, "x"))
	b.send(3, lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{3}, TTL: benchTTL})
	b.refuse = true
	b.turn()
	b.want(1, "ended 1 overloaded")
	b.want(2, "")
	b.refuse = false
	b.send(1, acquireCmd(one, 1, 2, "x"))
	b.turn()
	b.want(1, "ended 1 unknown")
	if s := b.core.Status(); s.Opens != 0 || s.Attachments != 1 {
		t.Errorf("%+v", s)
	}
	_ = two
}

// A peer whose queue is full loses its attachments, and is told until it listens.
func TestRefusedReplyEndsThePeersAttachments(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(1), b.open(2)
	b.full[1] = true
	b.send(1, acquireCmd(one, 1, 1, "x"))
	b.send(2, acquireCmd(two, 1, 1, "y"))
	b.step()
	b.want(2, "state 1 granted")
	b.turn()
	if b.core.Status().Attachments != 1 {
		t.Fatal("the attachment lives on")
	}
	for range 5 {
		b.advance(retryAfter)
		if next := b.core.Next(); next.After(b.now) {
			t.Fatalf("next turn in %v", next.Sub(b.now))
		}
		b.turn()
		b.want(1, "ended 1 overloaded")
	}
	b.renew(1, one, 1, 1)
	b.turn()
	b.want(1, "ended 1 unknown")
	b.full[1] = false
	b.advance(retryAfter)
	b.turn()
	b.want(1, "ended 1 overloaded")
	b.advance(retryAfter)
	b.turn()
	b.want(1, "")
	b.attach(1, one, 2)
	b.core.Down(b.now, 1)
	b.turn()
	if s := b.core.Status(); s.Peers != 1 || s.Attachments != 1 || s.Sessions != 2 {
		t.Errorf("%+v", s)
	}
}

func TestDroppedFrameEndsThePeersAttachments(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.open(1)
	b.core.Dropped(b.now, 1)
	b.core.Dropped(b.now, 77)
	b.turn()
	b.want(1, "ended 1 overloaded")
}

// On a change of term nothing that waits survives, and the attached are sent to the new leader.
func TestRoleChangeThrowsAllAway(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(1), b.open(2)
	b.send(1, acquireCmd(one, 1, 1, "x"))
	b.renew(2, two, 1, 1)
	b.core.Role(b.now, Role{Term: 6, Leader: Target{3, "three"}})
	b.turn()
	if len(b.kinds) != 0 || b.round != 0 {
		t.Fatalf("proposed %v, round %d", b.kinds, b.round)
	}
	b.want(1, "redirect 6 3")
	b.want(2, "redirect 6 3")
	if s := b.core.Status(); s.Attachments+s.Sessions+s.Renewals+s.Opens+s.Peers+s.Askers != 0 {
		t.Errorf("left behind: %+v", s)
	}
	b.core.Applied(b.now, []lockfsm.Result{{Kind: lockfsm.Open, Code: lockfsm.Done, Session: 3}})
	b.turn()
	if b.core.Status().Sessions != 0 {
		t.Error("a follower keeps sessions")
	}
}

// The own address may become known later; that is no change of role.
func TestOwnAddressIsNoChange(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.open(1)
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: Target{9, "elsewhere"}})
	b.turn()
	if s := b.core.Status(); s.Attachments != 1 || s.Leader.Addr != "elsewhere" {
		t.Errorf("%+v", s)
	}
}

func TestReelectedLeaderInvitesItsPeersWhenReady(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(1)
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: Target{9, "self"}})
	b.term = 6
	b.turn()
	b.want(1, "")
	b.leads()
	b.turn()
	b.want(1, "redirect 6 9")
	b.attach(1, id, 2)
}

// Results go to whom they concern: what an unlock fires goes to the waiter's session, in the turn in which it is applied.
func TestFiredChangesAreTold(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two, three := b.open(1), b.open(2), b.open(3)
	b.send(1, acquireCmd(one, 1, 1, "x"))
	b.send(2, acquireCmd(two, 1, 1, "x"))
	b.send(3, acquireCmd(three, 1, 1, "x"))
	b.step()
	b.want(1, "state 1 granted")
	b.want(2, "state 1 waiting")
	b.want(3, "state 1 waiting")
	if r := b.replies[3][1]; r.kind != replyBehind || r.number != 1 || r.holder != one || r.waiters != 2 {
		t.Errorf("who is in the way: %+v", r)
	}
	b.core.Down(b.now, 3)
	b.send(1, releaseCmd(one, 1, 1))
	b.step()
	b.want(1, "freed 1 done")
	b.want(2, "state 1 granted")
	b.want(3, "") // not attached: it learns what it needs from its next Attach
	b.send(2, lockfsm.Command{Kind: lockfsm.Close, Session: two, Epoch: 1})
	b.step()
	b.want(2, "ended 1 no session")
	c := attachCmd(three, 2)
	c.Number, c.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
	b.send(3, c)
	b.step()
	b.want(3, "state 1 granted, attached 2 done")
	b.send(1, lockfsm.Command{Kind: lockfsm.Acquire, Session: one, Epoch: 1, Number: 2, Key: "x", Try: true})
	b.step()
	b.want(1, "held 2")
	if r := b.replies[1][0]; r.holder != three || string(r.record) != "r" || r.token == 0 || r.since != 1_700_000_000_000 {
		t.Errorf("%+v", r)
	}
}

func TestAttachOfNoSession(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.send(1, attachCmd(12345, 1), acquireCmd(12345, 1, 1, "x"))
	b.step()
	b.want(1, "attached 1 no session")
	if s := b.core.Status(); s.Attachments+s.Peers != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// The states of a session with very many requests are split into frames, and Attached comes last.
func TestManyStatesAreSplit(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(1)
	const many = 40_000
	for n := lockfsm.Number(1); n <= many; n += 1000 {
		var cmds []lockfsm.Command
		for i := range lockfsm.Number(1000) {
			cmds = append(cmds, acquireCmd(id, 1, n+i, fmt.Sprint("k", n+i)))
		}
		b.send(1, cmds...)
		b.step()
	}
	c := attachCmd(id, 2)
	c.Number, c.Live = many+1, []lockfsm.Range{{First: 1, Last: many}}
	b.send(1, c)
	b.turn()
	b.apply()
	b.core.Tick(b.now)
	all := b.core.Replies()
	if len(all) != 1 || len(all[0].Frames) < 3 {
		t.Fatalf("%d peers, %d frames", len(all), len(all[0].Frames))
	}
	count, last := 0, reply{}
	for _, f := range all[0].Frames {
		if len(f) > replyBytes+100 {
			t.Errorf("a frame of %d bytes", len(f))
		}
		for len(f) > 0 {
			r, rest, err := nextReply(f)
			if err != nil {
				t.Fatal(err)
			}
			count, last, f = count+1, r, rest
		}
	}
	if count != many+1 || last.kind != replyAttached {
		t.Errorf("%d records, the last is %+v", count, last)
	}
}

func TestDownLeavesSessionsToTheirLease(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(1)
	b.core.Down(b.now, 1)
	b.core.Down(b.now, 1)
	b.pass(benchTTL - time.Second)
	if s := b.core.Status(); s.Sessions != 1 || s.Attachments+s.Peers != 0 {
		t.Fatalf("%+v", s)
	}
	b.attach(1, id, 2)
}
