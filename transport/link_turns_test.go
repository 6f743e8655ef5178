package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// The limits apply to the data in the queue, not to data that was taken before.
func TestEachTurnHasTheWholeQueue(t *testing.T) {
	part := make([]byte, 700<<10)
	small := func(c *Config) { c.QueueBytes, c.RaftBytes, c.RaftMessages, c.MessageBytes = 1<<20, 1<<20, 10, 1<<20 }
	message := func(a, b *node, data ...[]byte) []*raftpb.Message {
		var all []*raftpb.Message
		for _, d := range data {
			m := raftMessage(a, b, 1)
			m.Entries[0].Data = d
			all = append(all, m)
		}
		return all
	}
	for name, row := range map[string]struct {
		turn    func(a, b *node) Frame
		bytes   int // session data that arrives in each turn
		raft    int // raft messages that arrive in each turn
		dropped uint64
	}{
		"renewals":   {turn: func(*node, *node) Frame { return Frame{Renewals: part} }, bytes: len(part)},
		"commands":   {turn: func(*node, *node) Frame { return Frame{Commands: part} }, bytes: len(part)},
		"replies":    {turn: func(*node, *node) Frame { return Frame{Replies: part} }, bytes: len(part)},
		"raft bytes": {turn: func(a, b *node) Frame { return Frame{Raft: message(a, b, part)} }, raft: 1},
		"raft messages": {turn: func(a, b *node) Frame {
			return Frame{Raft: message(a, b, nil, nil, nil, nil, nil, nil, nil)}
		}, raft: 7},
		"a raft message that fits no frame, and others behind it": {turn: func(a, b *node) Frame {
			return Frame{Raft: message(a, b, nil, make([]byte, 1<<20-slackBytes), nil)}
		}, raft: 2, dropped: 1},
		"a raft message that is larger than it seems": {turn: func(a, b *node) Frame {
			all := message(a, b, nil, nil, nil)
			all[1].Responses = []*raftpb.Message{{Context: make([]byte, 1<<20)}}
			return Frame{Raft: all}
		}, raft: 2, dropped: 1},
		"words and raft": {turn: func(a, b *node) Frame {
			return Frame{Renewals: part[:1], Commands: part[:300<<10], Replies: part[:300<<10],
				Raft: message(a, b, part[:400<<10])}
		}, bytes: 1 + 600<<10, raft: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1, small), w.node("b", 2, small)
				for turn := range uint64(5) {
					if err := a.Send(b.peer(), row.turn(a, b)); err != nil {
						t.Fatalf("turn %d: %v", turn, err)
					}
					synctest.Wait()
					words, raft := 0, 0
					for _, e := range b.seen() {
						if e.down != nil {
							t.Fatalf("turn %d: %v", turn, e.down)
						}
						words += len(e.frame.Renewals) + len(e.frame.Commands) + len(e.frame.Replies)
						raft += len(e.frame.Raft)
					}
					if dropped := a.Counts().RaftDropped; words != row.bytes || raft != row.raft ||
						dropped != row.dropped*(turn+1) {
						t.Fatalf("turn %d: %d bytes and %d messages arrive, %d were dropped by now", turn, words,
							raft, dropped)
					}
				}
			})
		})
	}
}

// The mark of a retired replica, and the reason for ending a link, are sent after all earlier data.
// A large piece of data is sent in a separate frame.
func TestTheLastWordIsTheLast(t *testing.T) {
	large := make([]byte, frameBytes*2/3)
	message := &raftpb.Message{Entries: []*raftpb.Entry{{Data: large}}}
	for name, f := range map[string]Frame{
		"words":           {Commands: large},
		"raft":            {Raft: []*raftpb.Message{message}},
		"both":            {Renewals: large, Replies: large, Raft: []*raftpb.Message{message}},
		"one large piece": {Commands: large, Replies: make([]byte, 2*frameBytes)},
		"one large message": {Commands: large,
			Raft: []*raftpb.Message{{Entries: []*raftpb.Entry{{Data: make([]byte, 2*frameBytes)}}}}},
	} {
		c := Config{}.withDefaults()
		q := newQueue(&c)
		for range 3 {
			if dropped, err := q.push(&f); dropped > 0 || err != nil {
				t.Fatal(name, err)
			}
		}
		_, _ = q.push(&Frame{Retired: true})
		q.end(&wire.Refusal{Text: "bye"})
		frames := 0
		for {
			out, ended, _ := q.next()
			if out == nil {
				if !ended || frames < 2 {
					t.Errorf("%s: ended %v, after %d frames", name, ended, frames)
				}
				break
			}
			frames++
			words := len(out.Renewals) + len(out.Commands) + len(out.Replies)
			for _, m := range out.Raft {
				words += len(m)
			}
			if words > 2*frameBytes+slackBytes {
				t.Errorf("%s: frame %d has %d bytes, more than its largest piece", name, frames, words)
			}
			q.mu.Lock()
			rest := q.bytes + len(q.raft)
			q.mu.Unlock()
			if last := out.Retired || out.Refusal != nil; last != (rest == 0) ||
				last && (!out.Retired || out.Refusal == nil) {
				t.Errorf("%s: the last word in frame %d: %v, with %d to come", name, frames, last, rest)
			}
		}
	}
}

// A frame that push accepts after drop would be lost without a Down.
func TestADroppedQueueTakesNothing(t *testing.T) {
	c := Config{}.withDefaults()
	q := newQueue(&c)
	_, _ = q.push(&Frame{Commands: []byte("x"), Raft: []*raftpb.Message{{}}, Retired: true})
	q.say(&wire.Standing{})
	q.end(&wire.Refusal{})
	q.drop()
	if f, ended, _ := q.next(); f != nil || !ended || q.bytes != 0 || q.raftBytes != 0 {
		t.Errorf("left: %v, ended: %v, %d and %d bytes", f, ended, q.bytes, q.raftBytes)
	}
	q = newQueue(&c)
	q.drop()
	if _, err := q.push(&Frame{Commands: []byte("x")}); !errors.Is(err, ErrNoLink) {
		t.Errorf("a dropped queue takes a frame: %v", err)
	}
}

// faulty is a connection on which only one call fails.
type faulty struct {
	net.Conn
	left *atomic.Int64
	read bool // Read fails instead of Write
}

func (c faulty) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.read && err == nil && c.left.Add(-1) == 0 {
		return 0, syscall.ECONNRESET
	}
	return n, err
}

func (c faulty) Write(b []byte) (int, error) {
	if !c.read && c.left.Add(-1) == 0 {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// Whichever call fails, every accepted frame arrives or is followed by a Down. No frame arrives
// twice or after a later frame, and the next dial succeeds.
func TestALinkWhoseConnectionFailsOnce(t *testing.T) {
	for _, kind := range []string{"dial", "read", "write"} {
		for n := int64(1); n <= 12; n++ {
			t.Run(fmt.Sprint(kind, " ", n), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					left := &atomic.Int64{}
					left.Store(n)
					failing := dialsWith(func(conn net.Conn) net.Conn { return faulty{conn, left, kind == "read"} })
					if kind == "dial" {
						failing = func(c *Config) {
							dial := c.Dial
							c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
								if left.Add(-1) == 0 {
									return nil, syscall.ECONNREFUSED
								}
								return dial(ctx, addr)
							}
						}
					}
					a, b := w.node("a", 1, failing), w.node("b", 2)
					b.onFrame = func(from Identity, f Frame) {
						_ = b.Send(nodeid.Endpoint{ID: from.Instance},
							Frame{Replies: f.Commands})
					}
					l := lossLedger{a: a, b: b}
					for range 12 {
						l.turn(t)
						if kind == "dial" { // each turn needs a new dial
							a.Port.mu.Lock()
							if link := a.links[id(2)]; link != nil {
								link.stream.kill()
							}
							a.Port.mu.Unlock()
							time.Sleep(maxPause)
							a.seen()
						}
					}
					if left.Load() > 0 {
						t.Fatalf("the %s did not come about", kind)
					}
					if l.downs > 1 && kind != "dial" {
						t.Errorf("%d downs after one failure", l.downs)
					}
					a.Close()
					b.Close()
					if ca, cb := a.Counts(), b.Counts(); ca.Links+ca.Dialing+ca.Ending+cb.Links+cb.Ending != 0 {
						t.Errorf("left behind: %+v, %+v", ca, cb)
					}
				})
			})
		}
	}
}

// lossLedger records the frames that node a has sent, the frames that node b has echoed, and the
// Downs.
type lossLedger struct {
	a, b  *node
	sent  int
	last  int  // newest frame that has arrived at b
	gap   bool // Down was called at b after the newest frame
	downs int
}

// turn sends some frames, and waits until they have arrived or Down was called at node a.
func (l *lossLedger) turn(t *testing.T) {
	t.Helper()
	accepted := 0
	for range 3 {
		err := l.a.Send(l.b.peer(), Frame{Commands: fmt.Appendf(nil, "%d ", l.sent+1)})
		if err == nil {
			l.sent++
			accepted++
		} else if !errors.Is(err, ErrNoLink) {
			t.Fatalf("frame %d: %v", l.sent+1, err)
		}
		synctest.Wait()
	}
	time.Sleep(maxPause + linger + time.Second)
	synctest.Wait()
	for _, e := range l.b.seen() {
		l.gap = l.gap || e.down != nil
		for _, word := range strings.Fields(string(e.frame.Commands)) {
			n := 0
			if _, err := fmt.Sscan(word, &n); err != nil || n <= l.last || n > l.last+1 && !l.gap && l.last > 0 {
				t.Fatalf("%q arrives behind %d, a Down between: %v", word, l.last, l.gap)
			}
			l.last, l.gap = n, false
		}
	}
	echoed, told := 0, 0
	for _, e := range l.a.seen() {
		if e.down != nil {
			told++
		}
		echoed += bytes.Count(e.frame.Replies, []byte(" "))
	}
	if l.downs += told; told == 0 && (echoed != accepted || l.last != l.sent) {
		t.Fatalf("%d frames were accepted, up to %d; %d were answered, up to %d, and no Down has come", accepted,
			l.sent, echoed, l.last)
	}
}
