package transport

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

func (n *node) indexes() (all []uint64) {
	synctest.Wait()
	for _, e := range n.seen() {
		if len(e.frame.Commands) == 0 && len(e.frame.Raft) > 0 && !e.frame.Duplicate {
			n.t.Error("a duplicate arrived as a message of the link")
		}
		for _, m := range e.frame.Raft {
			all = append(all, m.GetIndex())
		}
	}
	return all
}

func (n *node) twice(to *node, m *raftpb.Message) {
	n.SendDuplicates(to.peer(), []*raftpb.Message{m})
}

// A duplicate is delivered only if there is a link, both sides are in the same group, and the
// message is from the sender's raft ID to the receiver's raft ID.
func TestDuplicates(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		a.twice(b, raftMessage(a, b, 1))
		if got := b.indexes(); len(got) > 0 {
			t.Fatalf("without a link %v arrive", got)
		}
		a.send(b, "x")
		synctest.Wait()
		a.twice(b, raftMessage(a, b, 2))
		if got := b.indexes(); len(got) != 1 || got[0] != 2 {
			t.Fatalf("%v arrive, want 2", got)
		}
		a.twice(b, raftMessage(c, b, 3))
		a.twice(b, raftMessage(a, c, 4))
		if got := b.indexes(); len(got) > 0 {
			t.Fatalf("%v of or for another replica arrive", got)
		}
		b.self.Group = 8
		b.identify()
		a.twice(b, raftMessage(a, b, 5))
		if got := b.indexes(); len(got) > 0 {
			t.Fatalf("%v of another group arrive", got)
		}
	})
}

func TestDuplicatesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		b.seen()
		w.net.Cut("a", "b")
		for i := range uint64(10 * maxDuplicates) {
			a.twice(b, raftMessage(a, b, i))
		}
		large := raftMessage(a, b, 1)
		large.Entries[0].Data = make([]byte, maxDuplicateBytes)
		a.twice(b, large)
		w.net.Heal("a", "b")
		time.Sleep(time.Second)
		if got := len(b.indexes()); got == 0 || got > 2*maxDuplicates { // one parcel in flight, one queued
			t.Fatalf("%d arrive, want at most %d", got, 2*maxDuplicates)
		}
		packed := make([][]byte, maxDuplicates+1)
		for i := range packed {
			packed[i], _ = appendMessage(nil, raftMessage(a, b, 7))
		}
		flow, err := a.Gossip().open("b:1")
		if err != nil {
			t.Fatal(err)
		}
		defer flow.end()
		if _, err := a.Gossip().send(flow, "b:1", waiting{raft: packed}); err != nil {
			t.Fatal(err)
		}
		if got := b.indexes(); len(got) > 0 {
			t.Fatalf("%d in one message arrive", len(got))
		}
	})
}

// A late duplicate may be a leader's last heartbeat, which must not arrive after the Down of the
// leader.
func TestNoDuplicateBehindTheEndOfALink(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait() // needed: a duplicate that arrives before the link is up is dropped
		a.twice(b, raftMessage(a, b, 1))
		synctest.Wait()
		b.mu.Lock()
		b.onDown = func() { a.twice(b, raftMessage(a, b, 2)) }
		b.mu.Unlock()
		b.Port.mu.Lock()
		b.links[a.identity.Instance].stream.kill()
		b.Port.mu.Unlock()
		var got strings.Builder
		synctest.Wait()
		for _, e := range b.seen() {
			if e.down != nil {
				got.WriteString("down ")
			}
			for range e.frame.Raft {
				got.WriteString("raft ")
			}
		}
		if got.String() != "raft down " {
			t.Fatalf("got %q", got.String())
		}
	})
}
