package raftlog

import (
	"bytes"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func TestBatchesThatWaitShareAnEntry(t *testing.T) {
	for _, inFlight := range []int{1, 2} {
		c, r := lone(t, func(cfg *CoreConfig) { cfg.EntriesInFlight = inFlight })
		first := r.core.Status().Applied
		for range 10 {
			r.propose() // the disk is busy with the first batch after this turn
			r.turn()
		}
		if got := r.core.Status().InFlight; got != inFlight {
			t.Errorf("%d entries in flight, want %d", got, inFlight)
		}
		c.drain()
		if entries := c.check.last - first; c.check.next[2] != 10 || entries != uint64(inFlight+1) {
			t.Errorf("%d in flight: %d batches in %d entries, want 10 in %d", inFlight, c.check.next[2], entries,
				inFlight+1)
		}
		if got := r.core.Status(); got.InFlight != 0 || got.Queued != 0 {
			t.Errorf("left behind: %+v", got)
		}
		c.verify()
	}
}

// While a large entry is in flight, a small batch waits until the batches are as large as that
// entry, the entry is applied, or a tick has passed.
func TestASmallBatchWaitsBehindALargeEntry(t *testing.T) {
	const crowd = crowdBytes / batchBytes
	offer := func(r *replica, batches int) {
		for range batches {
			r.propose()
		}
		r.turn()
	}
	for what, leave := range map[string]func(*cluster, *replica){
		"more batches": func(_ *cluster, r *replica) { offer(r, crowd) },
		"a tick":       func(_ *cluster, r *replica) { r.now = r.now.Add(testTick); r.core.Tick(r.now); r.turn() },
		"an apply": func(c *cluster, r *replica) {
			first := r.machine.index
			for r.machine.index == first {
				r.sync()
				r.turn()
			}
		},
	} {
		c, r := lone(t)
		offer(r, crowd) // the disk is busy with this entry
		offer(r, 1)
		if got := r.core.Status(); got.InFlight != 1 || got.Queued != batchBytes {
			t.Errorf("behind a large entry a batch did not wait: %+v", got)
		}
		leave(c, r)
		if got := r.core.Status(); got.Queued != 0 {
			t.Errorf("%s, and it still waits: %+v", what, got)
		}
		c.drain()
		c.verify()
	}
	c, r := lone(t)
	offer(r, crowd-1)
	offer(r, 1)
	if got := r.core.Status(); got.InFlight != 2 {
		t.Errorf("behind a small entry a batch had to wait: %+v", got)
	}
	c.drain()
	c.verify()
}

// A deferrable batch waits for the first of four events: a batch that is not deferrable,
// EndDeferral, a tick, or a report that the waiting batches are no longer deferrable. The order
// of the batches is kept.
func TestDeferrableBatchesWaitForTheNext(t *testing.T) {
	number := func(waiting []byte) uint64 { return decodeBatch(waiting).number }
	for what, end := range map[string]func(r *replica, deferrable *bool){
		"another":              func(r *replica, _ *bool) { r.propose() },
		"a tick":               func(r *replica, _ *bool) { r.now = r.now.Add(testTick); r.core.Tick(r.now) },
		"enough of it":         func(r *replica, _ *bool) { r.core.EndDeferral() },
		"no longer deferrable": func(_ *replica, deferrable *bool) { *deferrable = false },
	} {
		deferrable, settled := true, false
		c, r := lone(t, func(cfg *CoreConfig) {
			cfg.Deferrable = func(waiting []byte, none bool) bool {
				settled = none
				return deferrable && len(waiting) == batchBytes && number(waiting) == 1
			}
		})
		before := r.core.Status().Last
		r.propose()
		r.turn()
		r.propose()
		r.turn()
		if got := r.core.Status(); got.Last != before+1 || got.Queued != batchBytes || settled {
			t.Fatalf("%s: with an entry under way %+v, settled %v", what, got, settled)
		}
		c.drain()
		if got := r.core.Status(); got.Last != before+1 || got.Queued != batchBytes || !settled ||
			!r.core.DeferralBegins() || r.core.DeferralBegins() {
			t.Fatalf("%s: with none under way %+v, settled %v", what, got, settled)
		}
		end(r, &deferrable)
		r.turn()
		if got := r.core.Status(); got.Last != before+2 || got.Queued != 0 {
			t.Errorf("%s, and it still waits: %+v", what, got)
		}
		c.drain()
		c.verify()
	}
}

// Queued is called with each batch that the leader accepts, in order, and with no other batch.
func TestQueuedIsToldOfEachBatch(t *testing.T) {
	var queued []uint64
	_, r := lone(t, func(cfg *CoreConfig) {
		cfg.QueueBytes = 2 * batchBytes
		cfg.Queued = func(batch []byte) { queued = append(queued, decodeBatch(batch).number) }
	})
	r.core.Propose(r.core.Status().Term+1, make([]byte, batchBytes))
	for range 3 { // there is no room for the third
		r.propose()
	}
	if !slices.Equal(queued, []uint64{0, 1}) {
		t.Errorf("it is told of %v", queued)
	}
}

func TestALargeQueueIsNotDeferred(t *testing.T) {
	asked := 0
	_, r := lone(t, func(cfg *CoreConfig) {
		cfg.Deferrable = func(waiting []byte, _ bool) bool { asked = max(asked, len(waiting)); return true }
	})
	for range crowdBytes/batchBytes + 1 {
		r.propose()
	}
	r.turn()
	if got := r.core.Status(); got.InFlight != 1 || got.Queued != 0 || asked >= crowdBytes {
		t.Errorf("%+v, asked for %d bytes", got, asked)
	}
}

func TestLargeQueueMakesSeveralEntries(t *testing.T) {
	c, r := lone(t, func(cfg *CoreConfig) { cfg.EntryBytes = 4 * batchBytes })
	before := r.core.Status().Applied
	for range 20 {
		r.propose()
	}
	r.turn()
	c.drain()
	if got := c.check.last - before; got != 5 {
		t.Errorf("20 batches with room for 4 in an entry made %d entries, want 5", got)
	}
	c.verify()
}

func TestQueueIsBounded(t *testing.T) {
	_, r := lone(t, func(cfg *CoreConfig) { cfg.QueueBytes = 100 })
	if r.core.Propose(2, make([]byte, 101)) {
		t.Errorf("a batch larger than the queue was taken")
	}
	if !r.core.Propose(2, make([]byte, 60)) || r.core.Propose(2, make([]byte, 60)) {
		t.Errorf("the queue does not end at its bound")
	}
	if r.core.Propose(1, nil) || r.core.Propose(3, nil) {
		t.Errorf("a batch of another term was taken")
	}
	r.core.Turn()
	if got := r.core.Queued(); got != 0 {
		t.Errorf("%d bytes are still queued after they were proposed", got)
	}
}

func TestEntryIsNotAliasedToTheBatch(t *testing.T) {
	c, r := lone(t)
	buf := batch{2, 0}.encode()
	for n := range uint64(3) {
		copy(buf, batch{2, n}.encode())
		r.core.Propose(2, buf)
		clear(buf)
		r.turn()
	}
	c.drain()
	c.verify()
	if c.check.next[2] != 3 {
		t.Errorf("%d batches applied, want 3", c.check.next[2])
	}
}

func TestBatchNeverEntersAnotherTerm(t *testing.T) {
	c := newCluster(t, 5, 3)
	l := c.elect()
	old := l.role.Term
	c.isolate(l.id)
	for range 8 { // two batches are proposed, the others wait
		l.propose()
		l.turn()
	}
	for range 40 {
		l.now = l.now.Add(testTick)
		l.core.Tick(l.now)
		l.turn()
	}
	if got := l.core.Queued(); l.role.Leading || got != 0 {
		t.Fatalf("after the lead is lost %d bytes are queued", got)
	}
	clear(c.cut)
	c.settle(40)
	for l.leading == 0 {
		if now := c.leader(); now != nil && now != l {
			now.core.Transfer(l.id)
			now.turn()
		}
		c.settle(5)
	}
	for index, e := range c.check.entries {
		if len(e.data) > 0 && decodeBatch([]byte(e.data)).term == old && e.term != old {
			t.Errorf("entry %d of term %d holds a batch of term %d", index, e.term, old)
		}
	}
	if !l.propose() {
		t.Error("the new lead takes no batch")
	}
	l.turn()
	c.settle(3)
	if c.check.next[l.role.Term] != 1 {
		t.Error("the new lead applies no batch: the entries in flight of the old one still count")
	}
	c.verify()
}

func TestQueueIsDiscardedWithATermBetweenTurns(t *testing.T) {
	c := newCluster(t, 5, 3, func(cfg *CoreConfig) { cfg.EntriesInFlight = 1 })
	l := c.elect()
	term := l.role.Term
	l.propose()
	l.turn()
	l.propose() // waits
	other := c.replicas[l.id%3].id
	l.core.Step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), From: &other, To: &l.id, Term: new(term + 5),
		Commit: new(uint64)})
	if l.core.Queued() != 0 {
		t.Errorf("a batch outlives its term")
	}
	if l.core.Propose(term, []byte("late")) {
		t.Errorf("a batch of the old term was taken")
	}
}

func TestQueueWaitsWhileRaftRefuses(t *testing.T) {
	t.Run("transfer", func(t *testing.T) {
		c := newCluster(t, 5, 3)
		l := c.elect()
		to := c.replicas[l.id%3]
		c.cut[[2]uint64{l.id, to.id}] = true
		if err := l.core.Transfer(to.id); err != nil {
			t.Fatal(err)
		}
		l.propose()
		l.turn()
		if got := l.core.Status(); got.Queued != batchBytes || !l.core.Transferring() {
			t.Errorf("during a transfer: %+v", got)
		}
		delete(c.cut, [2]uint64{l.id, to.id})
		c.wire = nil
		for range 12 { // longer than an election timeout, so that the transfer fails
			l.now = l.now.Add(testTick)
			l.core.Tick(l.now)
			l.turn()
			c.drain()
		}
		if c.check.next[l.role.Term] != 1 || !l.role.Leading {
			t.Errorf("the batch did not get in after the transfer failed")
		}
		c.verify()
	})
	t.Run("size", func(t *testing.T) {
		c, r := lone(t, func(cfg *CoreConfig) { cfg.UncommittedBytes, cfg.EntriesInFlight = 2*batchBytes, 100 })
		for range 10 {
			r.propose()
			r.turn()
		}
		if got := r.core.Status(); got.InFlight != 2 || got.Queued != 8*batchBytes {
			t.Errorf("with room for two uncommitted batches: %+v", got)
		}
		c.drain()
		if c.check.next[2] != 10 {
			t.Errorf("%d batches applied, want 10", c.check.next[2])
		}
		c.verify()
	})
}

func TestQueue(t *testing.T) {
	var q queue
	var want bytes.Buffer
	next, out := 0, []byte{}
	random := newCluster(t, 9, 1).random
	for range 5000 {
		if random.IntN(2) == 0 {
			b := bytes.Repeat([]byte{byte(next)}, random.IntN(300))
			next++
			q.push(b)
			want.Write(b)
		} else if q.size() > 0 {
			data, n := q.peek(500)
			if n > 1 && len(data) > 500 {
				t.Fatalf("%d batches of %d bytes in an entry of 500", n, len(data))
			}
			q.drop(n)
			out = append(out, data...)
		}
		if got := want.Len() - len(out); got != q.size() {
			t.Fatalf("queue says %d bytes, want %d", q.size(), got)
		}
	}
	if !bytes.Equal(out, want.Bytes()[:len(out)]) {
		t.Error("the queue does not give back what went in")
	}
}

func TestPeekedEntryOutlivesTheBuffer(t *testing.T) {
	var q queue
	q.push([]byte("entry"))
	data, n := q.peek(100)
	q.drop(n)
	q.push([]byte("other"))
	if string(data) != "entry" {
		t.Errorf("an entry that was handed to raft has become %q", data)
	}
}
