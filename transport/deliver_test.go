package transport

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/capability"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func TestWhatIsDelivered(t *testing.T) {
	words := [3][]byte{nil, []byte("x"), nil}
	for name, row := range map[string]struct {
		frame  func(a, b *node) received
		change func(b *node, l *link)
		want   bool   // whether the handler must get the frame
		raft   int    // raft messages in the delivered frame
		refuse string // part of the refusal
	}{
		"words": {frame: func(*node, *node) received { return received{words: words} }, want: true},
		"raft": {frame: func(a, b *node) received {
			return received{raft: []*raftpb.Message{raftMessage(a, b, 1)}}
		}, want: true, raft: 1},
		"retired": {frame: func(*node, *node) received { return received{retired: true} }, want: true},
		"raft that is not ours beside raft that is": {frame: func(a, b *node) received {
			return received{raft: []*raftpb.Message{raftMessage(b, a, 1), raftMessage(a, b, 2)}}
		}, want: true, raft: 1},
		"raft that is not ours": {frame: func(a, b *node) received {
			return received{raft: []*raftpb.Message{raftMessage(b, a, 1)}}
		}},
		"nothing":    {frame: func(*node, *node) received { return received{} }},
		"a standing": {frame: func(a, _ *node) received { return received{standing: a.self.standing()} }},
		"an address that is too long": {frame: func(*node, *node) received {
			return received{standing: &wire.Standing{Group: 7, Addr: strings.Repeat("a", maxAddr+1)}, words: words}
		}, refuse: "too long"},
		"a message that cannot be decoded": {
			frame: func(*node, *node) received { return received{malformed: true, words: words} }, refuse: "decoded",
		},
		"words for an earlier incarnation": {
			frame:  func(*node, *node) received { return received{words: words} },
			change: func(_ *node, l *link) { l.self = id(9) },
		},
		"words on a link that has ended": {
			frame:  func(*node, *node) received { return received{words: words} },
			change: func(_ *node, l *link) { l.mute.Store(true) },
		},
		"the end of a link": {frame: func(*node, *node) received {
			return received{refusal: &wire.Refusal{Text: "enough"}, words: words}
		}},
		"words of another group": {
			frame:  func(*node, *node) received { return received{words: words} },
			change: func(_ *node, l *link) { l.peer.Group++ }, refuse: "group",
		},
		"a standing of another group": {
			frame:  func(a, _ *node) received { return received{standing: &wire.Standing{Group: 8}} },
			change: func(_ *node, l *link) { l.peer.Group++ },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				l := &link{port: &b.base, instance: id(1), self: id(2), peer: a.identity, queue: newQueue(&b.config)}
				if row.change != nil {
					row.change(b, l)
				}
				for range 3 {
					f := row.frame(a, b)
					r := l.deliver(&f)
					if (r != nil) != (row.refuse != "") || r != nil && !strings.Contains(r.Text, row.refuse) {
						t.Fatalf("the peer is told %v, want %q", r, row.refuse)
					}
					seen := b.seen()
					if (len(seen) == 1) != row.want || len(seen) > 1 ||
						row.want && len(seen[0].frame.Raft) != row.raft {
						t.Fatalf("handed over: %+v", seen)
					}
				}
				if a.Counts().Links+b.Counts().Links != 0 {
					t.Error("a link was opened for nothing")
				}
			})
		})
	}
}

// Session data from an admin client is delivered. Messages with which the client would vote, lead
// or retire are dropped, and the raft ID and the address of the client are ignored.
func TestWhatAGuestDelivers(t *testing.T) {
	for _, tier := range []capability.Tier{capability.Root, capability.Member, capability.Guest} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.node("a", 1), w.node("b", 2)
			l := &link{port: &b.base, instance: id(1), self: id(2), peer: a.identity, queue: newQueue(&b.config)}
			l.peer.Peer.Tier = tier
			f := received{
				standing: &wire.Standing{Group: 7, Raft: 55, Addr: "new:1"}, retired: true,
				words: [3][]byte{[]byte("r"), []byte("c"), []byte("a")},
				raft:  []*raftpb.Message{{From: new(uint64(55)), To: &b.self.Raft}},
			}
			if r := l.deliver(&f); r != nil {
				t.Fatal(r)
			}
			seen := b.seen()
			if len(seen) != 1 || len(seen[0].frame.Renewals) != 1 || len(seen[0].frame.Commands) != 1 {
				t.Fatalf("tier %v: delivered: %+v", tier, seen)
			}
			full := tier == capability.Root
			from, out := seen[0].from, seen[0].frame
			if (len(out.Raft) == 1) != full || (len(out.Replies) == 1) != full || out.Retired != full {
				t.Errorf("tier %v: delivered: %+v", tier, out)
			}
			if from.Group != 7 || (from.Raft == 55) != full || (from.Addr == "new:1") != full {
				t.Errorf("tier %v: it is %+v", tier, from)
			}
		})
	}
}

// The raft ID zero is not the ID of any replica.
func TestNoRaftIDIsNoReplicas(t *testing.T) {
	none, one := Identity{}, Identity{Raft: 1}
	self, without := &Self{Raft: 2}, &Self{}
	m := func(from, to uint64) *raftpb.Message { return &raftpb.Message{From: &from, To: &to} }
	for i, ok := range []bool{
		owns(self, one, m(1, 2)), !owns(self, none, m(0, 2)), !owns(without, one, m(1, 0)),
		!owns(without, none, m(0, 0)),
		!owns(self, one, m(2, 2)), !owns(self, one, m(1, 1)),
	} {
		if !ok {
			t.Errorf("message %d", i)
		}
	}
}

func TestRaftHasRoomOfItsOwn(t *testing.T) {
	c := Config{QueueBytes: 100}.withDefaults()
	q := newQueue(&c)
	for _, f := range []*Frame{
		{Commands: make([]byte, 100)}, {Retired: true}, {Raft: []*raftpb.Message{{From: new(uint64(1))}}},
	} {
		if dropped, err := q.push(f); dropped > 0 || err != nil {
			t.Fatal(dropped, err)
		}
	}
	if _, err := q.push(&Frame{Replies: []byte("x")}); !errors.Is(err, ErrFull) {
		t.Errorf("a full queue: %v", err)
	}
	if f, _, _ := q.next(); f == nil || len(f.Raft) != 1 || !f.Retired {
		t.Errorf("the frame is %v", f)
	}
}

func TestAnEmptyFrameIsNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		if err := a.Send(b.peer(), Frame{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c := a.Counts(); c.Links+c.Dialing != 0 || len(b.seen()) != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// If Send succeeded after a failed write, only a later Down would report that the frame is lost.
func TestALinkTakesNothingAfterAFailedWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		left := &atomic.Int64{}
		left.Store(1 << 30)
		a, b := w.node("a", 1, dialsWith(func(conn net.Conn) net.Conn { return faulty{conn, left, false} })),
			w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		left.Store(1)
		a.send(b, "lost")
		synctest.Wait()
		if err := a.Send(b.peer(), Frame{Commands: []byte("y")}); !a.Linked(id(2)) || !errors.Is(err, ErrNoLink) {
			t.Errorf("linked %v, a frame behind one that could not be written: %v", a.Linked(id(2)), err)
		}
	})
}
