package session

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// every returns one reply of each kind, with every field of the kind set.
func everyReply() []reply {
	return []reply{
		{kind: replyOpened, nonce: lockfsm.Nonce{1, 15: 9}, code: lockfsm.Done, session: 1 << 62, ttl: time.Minute, term: 3},
		{kind: replyAttached, session: 1 << 62, epoch: 4, code: lockfsm.NoSession, term: 1 << 63},
		{kind: replyState, session: 5, epoch: 6, number: 7, code: lockfsm.Granted, token: 1 << 62, watch: 8},
		{kind: replyHeld, session: 5, epoch: 6, number: 7, record: bytes.Repeat([]byte("r"), 300), holder: 9, token: 10, since: 11, waiters: 12, value: []byte("v"), key: []byte("k")},
		{kind: replyFreed, session: 5, epoch: 6, number: 7, code: lockfsm.Finished},
		{kind: replyRenewed, session: 5, epoch: 6, seq: 13},
		{kind: replyEnded, session: 5, epoch: 6, reason: endOverloaded},
		{kind: replyRedirect, term: 14, leader: nodeidtest.ID(1<<64 - 1), addr: []byte("host:7947")},
		{kind: replyGrace, session: 5, epoch: 6, ttl: time.Second},
		{kind: replyBehind, session: 5, epoch: 6, number: 7, record: []byte("r"), holder: 9, token: 10, since: 11, waiters: 12, value: []byte("v"), key: []byte("k")},
		{kind: replyDeadlock, session: 5, epoch: 6, number: 7, circle: []lockfsm.Link{
			{Session: 8, Record: []byte("r"), Key: "a"}, {Session: 9, Record: []byte("s"), Key: "b"},
		}},
		{kind: replyEvicted, session: 5, epoch: 6, number: 7, record: []byte("who"), value: []byte("why")},
		{kind: replyWanted, session: 5, epoch: 6, number: 7},
		{kind: replyTaken, session: 5, epoch: 6, number: 7, record: []byte("who")},
		{kind: replyForbidden, session: 5, epoch: 6, number: 7, key: []byte("k"), value: []byte("cron-host")},
	}
}

// The numbers are spoken between builds: they are pinned here, together with the bytes.
func TestReplyKindsArePinned(t *testing.T) {
	t.Parallel()
	for i, r := range everyReply() {
		if int(r.kind) != i+1 {
			t.Errorf("kind %d stands at place %d", r.kind, i+1)
		}
	}
	if endUnknown != 1 || endNoSession != 2 || endOverloaded != 3 || endRefused != 4 {
		t.Error("the reasons have moved")
	}
	r := reply{kind: replyState, session: 300, epoch: 2, number: 3, code: lockfsm.Granted, token: 4, watch: 5}
	if got, want := r.append(nil), []byte{8, 3, 0xac, 2, 2, 3, 2, 4, 5}; !bytes.Equal(got, want) {
		t.Errorf("a state is %v, want %v", got, want)
	}
	if got, want := (renewal{300, 2, 3, 1}).append(nil), []byte{0xac, 2, 2, 3, 1}; !bytes.Equal(got, want) {
		t.Errorf("a renewal is %v, want %v", got, want)
	}
}

func TestRepliesSurviveTheWay(t *testing.T) {
	t.Parallel()
	var frame []byte
	all := everyReply()
	for i := range all {
		frame = all[i].append(frame)
	}
	rest := frame
	for i := range all {
		r, next, err := nextReply(rest)
		if err != nil {
			t.Fatalf("kind %d: %v", all[i].kind, err)
		}
		if !reflect.DeepEqual(r, all[i]) {
			t.Errorf("%+v became %+v", all[i], r)
		}
		rest = next
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	for n := range frame {
		for b := frame[:n]; len(b) > 0; {
			var err error
			if _, b, err = nextReply(b); err != nil {
				break
			}
		}
	}
}

// Newer builds add kinds, and fields behind those that we know.
func TestUnknownKindsAndFieldsAreSkipped(t *testing.T) {
	t.Parallel()
	frame := []byte{3, 200, 1, 2}
	renewed := (&reply{kind: replyRenewed, session: 1, epoch: 1, seq: 1}).append(nil)
	renewed = append(renewed, 77)
	renewed[0]++
	frame = append(frame, renewed...)
	r, rest, err := nextReply(frame)
	if err != nil || r.kind != 200 {
		t.Fatalf("%+v, %v", r, err)
	}
	r, rest, err = nextReply(rest)
	if err != nil || r.seq != 1 || len(rest) != 0 {
		t.Fatalf("%+v, %d left, %v", r, len(rest), err)
	}
	b := newClientBench(t)
	b.attach()
	b.core.Receive(b.now, nodeidtest.ID(1), frame)
	b.want("")
}

func TestOversizedFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []reply{
		{kind: replyHeld, record: make([]byte, lockfsm.MaxRecordBytes+1)},
		{kind: replyRedirect, addr: make([]byte, maxAddrBytes+1)},
	} {
		if _, _, err := nextReply(r.append(nil)); err == nil {
			t.Errorf("kind %d with an oversized field is taken", r.kind)
		}
	}
}

// FuzzReplies gives any bytes to the decoder and to a client that is attached. What decodes must encode to something that decodes to
// the same, and the client's invariants hold whatever its leader says.
func FuzzReplies(f *testing.F) {
	for _, r := range everyReply() {
		f.Add(r.append(nil))
		r.session, r.epoch = 100, 1
		f.Add(r.append(nil))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, frame []byte) {
		for b := frame; len(b) > 0; {
			r, rest, err := nextReply(b)
			if err != nil {
				break
			}
			if r.kind >= replyOpened && r.kind <= replyWanted {
				again, left, err := nextReply(r.append(nil))
				if err != nil || len(left) != 0 || !reflect.DeepEqual(normal(again), normal(r)) {
					t.Fatalf("%+v became %+v, %v", r, again, err)
				}
			}
			b = rest
		}
		b := newClientBench(t)
		b.attach()
		b.hold("a")
		b.acquire("b", false)
		b.acquire("c", true)
		b.turn()
		b.core.Receive(b.now, nodeidtest.ID(1), frame)
		b.turn()
		b.advance(time.Second)
		b.core.Receive(b.now, nodeidtest.ID(1), frame)
		b.turn()
		b.advance(benchTTL)
		b.turn()
		if b.core.Status(b.now).Held != 0 {
			t.Fatal("a hold outlived a TTL without a renewal")
		}
	})
}

// normal makes an empty slice and none the same.
func normal(r reply) reply {
	if len(r.addr) == 0 {
		r.addr = nil
	}
	if len(r.record) == 0 {
		r.record = nil
	}
	return r
}

// FuzzKeeper gives any renewals and commands to a keeper that leads, from a peer with an attachment. Another peer must not suffer.
func FuzzKeeper(f *testing.F) {
	f.Add(renewal{1, 1, 1, 0}.append(nil), acquireCmd(1, 1, 1, "x").Append(nil))
	f.Add([]byte{0xff}, []byte{3, 1, 2, 3})
	f.Add([]byte(nil), lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}}.Append(lockfsm.Command{Kind: lockfsm.Attach, Session: 1, Epoch: 2, Number: 1, Nonce: lockfsm.Nonce{1}}.Append(nil)))
	f.Add([]byte(nil), lockfsm.Command{Kind: lockfsm.Expire, Session: 1, Term: 5}.Append(nil))
	f.Fuzz(func(t *testing.T, renewals, commands []byte) {
		b := leadingBench(t)
		one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
		b.core.Receive(b.now, nodeidtest.ID(1), renewals, commands)
		b.step()
		for _, kind := range []lockfsm.Kind{lockfsm.Acquire, lockfsm.Release} { // the same as our own, as far as it can be
			b.core.Receive(b.now, nodeidtest.ID(1), renewal{one, 1, 1, 0}.append(renewals), lockfsm.Command{Kind: kind, Session: one, Epoch: 1, Number: 1, Key: "x"}.Append(commands))
			b.step()
		}
		b.renew(nodeidtest.ID(2), two, 1, 1)
		b.send(nodeidtest.ID(2), acquireCmd(two, 1, 1, "y"))
		b.step()
		if b.core.attachments[two] == nil || b.core.attachments[two].peer.id != nodeidtest.ID(2) {
			t.Fatalf("peer 2 has lost its attachment: %q", b.said(nodeidtest.ID(2)))
		}
		if err := b.machine.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
