package keeper

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestOneBlobPerTurn checks that a turn makes one proposal, with the Stamp first and the clients'
// commands unchanged.
func TestOneBlobPerTurn(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	var all []byte
	for i := range lockfsm.Number(5) {
		for p, id := range map[nodeid.ID]lockfsm.SessionID{nodeidtest.ID(1): one} {
			frame := releaseCmd(id, 1, i+1).Append(acquireCmd(id, 1, i+1, "x").Append(nil))
			all = append(all, frame...)
			b.core.Receive(b.now, p, nil, frame)
		}
	}
	frame := acquireCmd(two, 1, 1, "x").Append(nil)
	b.core.Receive(b.now, nodeidtest.ID(2), nil, frame)
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
	id := b.open(nodeidtest.ID(1))
	n := lockfsm.Number(1)
	total := 0
	for range 30 {
		var frame []byte
		for len(frame) < 100_000 {
			frame = acquireCmd(id, 1, n, "some key of some length").Append(frame)
			n++
		}
		total += len(frame)
		b.core.Receive(b.now, nodeidtest.ID(1), nil, frame)
	}
	got := 0
	for range 10 {
		if b.turn(); len(b.blob) > blobBytes+200_000 {
			t.Fatalf("a blob of %d bytes", len(b.blob))
		}
		got += len(b.blob)
		if len(b.core.queue.runs) > 0 && b.core.Next() != b.now {
			t.Fatal("the rest is not due at once")
		}
		b.blob = nil
	}
	if got < total || b.core.queue.bytes != 0 {
		t.Fatalf("%d bytes proposed of %d", got, total)
	}
}

func TestOnlyTheAttachedMaySpeak(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	for name, c := range map[string]struct {
		from nodeid.ID
		cmd  lockfsm.Command
	}{
		"another peer":    {nodeidtest.ID(2), acquireCmd(id, 1, 1, "x")},
		"an older epoch":  {nodeidtest.ID(1), acquireCmd(id, 0, 1, "x")},
		"a later epoch":   {nodeidtest.ID(1), acquireCmd(id, 2, 1, "x")},
		"another session": {nodeidtest.ID(1), acquireCmd(id+1, 1, 1, "x")},
		"close":           {nodeidtest.ID(2), lockfsm.Command{Kind: lockfsm.Close, Session: id, Epoch: 1}},
		"leaving":         {nodeidtest.ID(2), lockfsm.Command{Kind: lockfsm.Leaving, Session: id, Epoch: 1}},
	} {
		b.send(c.from, c.cmd, c.cmd, c.cmd)
		b.turn()
		if len(b.kinds) != 0 || b.said(c.from) != fmt.Sprintf("ended %d unknown", c.cmd.Epoch) {
			t.Errorf("%s: proposed %v, told %q", name, b.kinds, b.said(c.from))
		}
	}
	b.send(nodeidtest.ID(1), acquireCmd(id, 1, 1, "x"))
	b.step()
	b.want(nodeidtest.ID(1), "state 1 granted")
}

// TestHostileCommands checks that a command that no client may send ends the attachments of its
// sender, and affects no other peer.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	kinds := []lockfsm.Kind{lockfsm.Stamp, lockfsm.Born, lockfsm.EndGrace, lockfsm.Raise, lockfsm.Expire,
		lockfsm.Adopt, 200}
	var frames [][]byte
	for _, kind := range kinds {
		frames = append(frames, lockfsm.Command{Kind: kind, Session: 1, Term: 5, Version: 9, TTL: benchTTL,
			Settings: []byte("s")}.Append(nil))
	}
	frames = append(frames, []byte{0xff}, []byte{5, 1, 2, 3, 4, 5}, bytes.Repeat([]byte{0x80}, 40))
	for i, bad := range frames {
		b := leadingBench(t)
		one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
		b.core.Receive(b.now, nodeidtest.ID(1), nil, append(acquireCmd(one, 1, 1, "x").Append(nil), bad...))
		b.turn()
		for _, kind := range b.kinds[min(1, len(b.kinds)):] {
			if kind != "acquire" {
				t.Errorf("frame %d: proposed %v", i, b.kinds)
			}
		}
		b.want(nodeidtest.ID(1), "ended 1 refused")
		b.send(nodeidtest.ID(2), acquireCmd(two, 1, 1, "y"))
		b.step()
		b.want(nodeidtest.ID(2), "state 1 granted")
	}
	b := leadingBench(t)
	b.open(nodeidtest.ID(1))
	b.core.Receive(b.now, nodeidtest.ID(1), []byte{0xff, 0xff}, nil)
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 refused")
	b.core.Receive(b.now, nodeidtest.ID(0), []byte{1, 1, 1}, []byte{1})
	b.turn()
}

// TestACommandOfLaterRulesIsUnsupported sends commands above the version in force, of every kind
// and with any fields. Each is answered by its header, none is proposed, and no attachment ends:
// the sender is a client with a newer build. The same bytes under the version in force are as
// before.
func TestACommandOfLaterRulesIsUnsupported(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one := b.open(nodeidtest.ID(1))
	inForce := b.machine.Charter().Rules
	fields := [][]byte{nil, {0}, {0xff}, bytes.Repeat([]byte{0x80}, 40), bytes.Repeat([]byte{7}, 70_000)}
	raw := func(rules uint32, kind int, more []byte) []byte {
		body := append(binary.AppendUvarint(nil, uint64(rules)), byte(kind))
		body = binary.AppendUvarint(append(binary.AppendUvarint(body, uint64(one)), 1), 9)
		body = append(body, more...)
		return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
	}
	for kind := range 256 {
		for i, more := range fields {
			for _, rules := range []uint32{inForce + 1, 1<<32 - 1} {
				frame := raw(rules, kind, more)
				b.core.Receive(b.now, nodeidtest.ID(1), nil, append(frame, raw(rules, kind, more)...))
				b.turn()
				b.want(nodeidtest.ID(1), "unsupported 9, unsupported 9")
				r := b.replies[nodeidtest.ID(1)][0]
				if len(b.kinds) > 0 || r.Command != lockfsm.Kind(kind) || r.Rules != inForce || r.Session != one || r.Epoch != 1 {
					t.Fatalf("kind %d, fields %d, rules %d: proposed %v, answered %+v", kind, i, rules, b.kinds, r)
				}
			}
		}
	}
	// Other commands of the same frame, before and after, have their effect.
	frame := append(acquireCmd(one, 1, 1, "x").Append(nil), raw(inForce+1, 200, nil)...)
	b.core.Receive(b.now, nodeidtest.ID(1), nil, acquireCmd(one, 1, 2, "y").Append(frame))
	b.step()
	b.want(nodeidtest.ID(1), "unsupported 9, state 1 granted, state 2 granted")
	b.core.Receive(b.now, nodeidtest.ID(1), nil, raw(inForce, 200, nil))
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 refused")
}

// TestTheVersionInForceFollowsARaise checks that a command is refused until the Raise is applied,
// and proposed after it.
func TestTheVersionInForceFollowsARaise(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one := b.open(nodeidtest.ID(1))
	next := lockfsm.RulesVersion + 1 // the machine of this build would fail, so the test applies the Raise
	later := acquireCmd(one, 1, 1, "x")
	later.Rules = next
	b.core.ProposeRaise(b.now, b.term, next)
	b.turn()
	if !slices.Contains(b.kinds, "raise") {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.blob = nil
	b.send(nodeidtest.ID(1), later)
	b.turn()
	b.want(nodeidtest.ID(1), "unsupported 1")
	b.core.Applied(b.now, []lockfsm.Result{{Kind: lockfsm.Raise, Code: lockfsm.Done}})
	b.send(nodeidtest.ID(1), later)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	if !slices.Contains(b.kinds, "acquire") {
		t.Fatalf("after the Raise: proposed %v", b.kinds)
	}
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.leads() // under the version of the machine
	b.turn()
	b.send(nodeidtest.ID(1), later)
	b.turn()
	b.want(nodeidtest.ID(1), "unsupported 1")
}

func TestHostileAmountsAreBounded(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	var many []byte
	for range frameRenewals + 1 {
		many = session.Renewal{Session: id, Epoch: 1, Seq: 1, Heard: 0}.Append(many)
	}
	b.core.Receive(b.now, nodeidtest.ID(1), many, nil)
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 refused")

	for i := range 3 * peerAttachments {
		b.send(nodeidtest.ID(2), b.attachCmd(lockfsm.SessionID(1000+i), 1))
	}
	if n := b.core.Status().Attachments; n != 0 {
		t.Errorf("%d attachments of sessions that are not there", n)
	}
	for i := range 3 * peerOpens {
		b.send(nodeidtest.ID(3), lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{3, byte(i), byte(i >> 8)},
			TTL: benchTTL})
	}
	if n := b.core.Status().Opens; n != min(peerOpens, peerSessions) {
		t.Errorf("%d opens of one peer", n)
	}
	b.turn()
	b.attach(nodeidtest.ID(1), id, 2)
	frame := acquireCmd(id, 2, 1, "x").Append(nil)
	for len(frame) < 1<<20 {
		frame = append(frame, frame...)
	}
	for range 20 {
		b.core.Receive(b.now, nodeidtest.ID(1), nil, frame)
	}
	if b.core.queue.bytes > peerBytes {
		t.Errorf("%d bytes of one peer wait", b.core.queue.bytes)
	}
	b.turn()
	if got := b.said(nodeidtest.ID(1)); got != "ended 2 overloaded, ended 2 unknown" {
		t.Errorf("told %q", got)
	}
}

// TestManyRunsAreBounded sends frames whose commands are for two sessions in turns, so that each
// command of six bytes is a run. The keeper keeps few of them, whether they wait for the log or for
// the pace of Attach, and no room for them afterwards.
func TestManyRunsAreBounded(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	peer := nodeidtest.ID(1)
	ids := []lockfsm.SessionID{b.open(peer), b.open(peer)}
	var frame []byte
	for i := range 2 * peerBytes / runBytes {
		frame = lockfsm.Command{Kind: lockfsm.Release, Session: ids[i%2], Epoch: 2, Number: 1}.Append(frame)
	}
	b.send(peer, b.attachCmd(ids[0], 2), b.attachCmd(ids[1], 2)) // the second one is held, and all behind it
	b.core.Receive(b.now, peer, nil, frame)
	runs, held := len(b.core.queue.runs), len(b.core.paces.held)
	if least := peerBytes / runBytes / 4; runs < least || held < least || runs+held > 4*least {
		t.Errorf("%d runs wait for the log, and %d for the pace", runs, held)
	}
	for epoch := range lockfsm.Epoch(250) {
		b.send(peer, b.attachCmd(ids[0], 3+epoch))
		b.step()
	}
	room := cap(b.core.queue.runs) + cap(b.core.queue.blob) + cap(b.core.paces.held)
	if b.core.queue.bytes > 0 || room > 3*2048 {
		t.Errorf("%d bytes wait, and there is room for %d runs", b.core.queue.bytes, room)
	}
	if err := b.core.Check(); err != nil {
		t.Error(err)
	}
}

func TestDuplicateOpenIsProposedOnce(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{7}, TTL: benchTTL}
	b.send(nodeidtest.ID(1), open)
	b.send(nodeidtest.ID(1), open)
	b.send(nodeidtest.ID(2), open)
	b.turn()
	if len(b.kinds) != 2 {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(2), "") // another peer has sent this nonce
	b.want(nodeidtest.ID(1), "opened done")
	id := b.replies[nodeidtest.ID(1)][0].Session
	b.send(nodeidtest.ID(1), open) // as if the answer had been lost
	b.step()
	b.want(nodeidtest.ID(1), "opened done")
	if b.replies[nodeidtest.ID(1)][0].Session != id {
		t.Error("another session for the same nonce")
	}
	if s := b.core.Status(); s.Opens+s.Peers != 0 || s.Sessions != 1 {
		t.Errorf("left behind: %+v", s)
	}
}

func TestRefusedProposalEndsItsAttachments(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	b.send(nodeidtest.ID(1), acquireCmd(one, 1, 1, "x"))
	b.send(nodeidtest.ID(3), lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{3}, TTL: benchTTL})
	b.refuse = true
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 overloaded")
	b.want(nodeidtest.ID(2), "")
	b.refuse = false
	b.send(nodeidtest.ID(1), acquireCmd(one, 1, 2, "x"))
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 unknown")
	if s := b.core.Status(); s.Opens != 0 || s.Attachments != 1 {
		t.Errorf("%+v", s)
	}
	_ = two
}
