package transport

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.etcd.io/raft/v3/raftpb"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// What is handed to the handler is for this life of the node, comes from a link that has not
// ended, and is not empty.
func TestWhatIsDelivered(t *testing.T) {
	words := [3][]byte{nil, []byte("x"), nil}
	for name, row := range map[string]struct {
		frame  func(a, b *node) received
		change func(b *node, l *link)
		want   bool   // it is handed over
		raft   int    // with so many raft messages
		refuse string // what the peer is told, in part
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
		"an absurd address": {frame: func(*node, *node) received {
			return received{standing: &wire.Standing{Group: 7, Addr: strings.Repeat("a", maxAddr+1)}, words: words}
		}, refuse: "absurd"},
		"a message that cannot be decoded": {
			frame: func(*node, *node) received { return received{malformed: true, words: words} }, refuse: "decoded",
		},
		"words for an earlier life": {
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
				l := &link{port: b.Port, instance: id(1), self: id(2), peer: a.identity, queue: newQueue(&b.config)}
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
					if (len(seen) == 1) != row.want || len(seen) > 1 || row.want && len(seen[0].frame.Raft) != row.raft {
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

// An empty frame is not sent, and no peer is dialed for it.
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

// A link on which a write has failed takes nothing any more, though its reader still takes in what
// has arrived: what it took would be known to be lost only by its Down.
func TestALinkTakesNothingAfterAFailedWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		left := &atomic.Int64{}
		left.Store(1 << 30)
		a, b := w.node("a", 1, dialsWith(func(conn net.Conn) net.Conn { return faulty{conn, left, false} })), w.node("b", 2)
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
