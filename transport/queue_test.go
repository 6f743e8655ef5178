package transport

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type ledger struct {
	t             *testing.T
	config        Config
	queue         *queue
	pushed, taken [3]bytes.Buffer
	ends          [3][]int // where each pushed piece ends
	raftIn        []uint64
	raftOut       []uint64
}

func (l *ledger) push(f Frame) {
	dropped, err := l.queue.push(&f)
	if err != nil || dropped > 0 {
		return
	}
	for k, b := range [3][]byte{f.Renewals, f.Commands, f.Replies} {
		l.pushed[k].Write(b)
		l.ends[k] = append(l.ends[k], l.pushed[k].Len())
	}
	for _, m := range f.Raft {
		l.raftIn = append(l.raftIn, m.GetIndex())
	}
}

// take takes one frame from the queue. It returns false if the queue was empty.
func (l *ledger) take() bool {
	f, _, dropped := l.queue.next()
	if f == nil {
		return false
	}
	if dropped > 0 || proto.Size(f) > l.config.MessageBytes {
		l.t.Fatalf("a frame of %d bytes, %d messages dropped", proto.Size(f), dropped)
	}
	for i, b := range [3][]byte{f.Renewals, f.Commands, f.Replies} {
		l.taken[i].Write(b)
		if end := l.taken[i].Len(); len(b) > 0 && !slices.Contains(l.ends[i], end) {
			l.t.Fatalf("a piece of kind %d was cut at %d", i, end)
		}
	}
	messages, refusal := unpack(f.Raft)
	if refusal != nil {
		l.t.Fatal(refusal)
	}
	for _, m := range messages {
		l.raftOut = append(l.raftOut, m.GetIndex())
	}
	return true
}

func TestQueueKeepsPiecesWhole(t *testing.T) {
	for seed := range uint64(10 / slowly) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			l := &ledger{t: t, config: (Config{MessageBytes: 2 << 20}).withDefaults()}
			l.queue = newQueue(&l.config)
			for i := range uint64(100) {
				b := make([]byte, min(rng.IntN(1<<rng.IntN(22)), 2<<20-slackBytes))
				for j := range b {
					b[j] = byte(i + uint64(j))
				}
				l.push([]Frame{
					{Renewals: b}, {Commands: b}, {Replies: b},
					{Raft: []*raftpb.Message{{Index: &i, Entries: []*raftpb.Entry{{Data: b[:0]}, {Data: b}}}}},
				}[rng.IntN(4)])
				if rng.IntN(20) == 0 {
					l.take()
				}
			}
			for l.take() {
			}
			for i := range l.pushed {
				if !bytes.Equal(l.pushed[i].Bytes(), l.taken[i].Bytes()) {
					t.Fatalf("kind %d differs", i)
				}
			}
			if !slices.Equal(l.raftIn, l.raftOut) || l.queue.bytes != 0 || l.queue.raftBytes != 0 {
				t.Fatalf("raft %v, want %v; %d and %d bytes are left", l.raftOut, l.raftIn, l.queue.bytes,
					l.queue.raftBytes)
			}
		})
	}
}

func TestQueueLendsItsBuffers(t *testing.T) {
	c := Config{}.withDefaults()
	q := newQueue(&c)
	for i := range 100 {
		text := fmt.Sprint("turn ", i)
		_, _ = q.push(&Frame{Commands: []byte(text)})
		f, _, _ := q.next()
		_, _ = q.push(&Frame{Commands: []byte("XXXXXXXXX")})
		if string(f.Commands) != text {
			t.Fatalf("%q was overwritten: %q", text, f.Commands)
		}
		q.next()
	}
	push := func() {
		_, _ = q.push(&Frame{Commands: []byte("some command"), Renewals: []byte("some renewal")})
		q.next()
	}
	if n := testing.AllocsPerRun(1000, push); n > 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

func TestQueueLimits(t *testing.T) {
	c := (Config{QueueBytes: 100, RaftMessages: 3, RaftBytes: 1000, MessageBytes: 1 << 20}).withDefaults()
	q := newQueue(&c)
	push := func(why string, f Frame, drops int, want error) {
		t.Helper()
		dropped, err := q.push(&f)
		if dropped != drops || !errors.Is(err, want) {
			t.Errorf("%s: dropped %d, %v; want %d, %v", why, dropped, err, drops, want)
		}
	}
	message := func(n int) *raftpb.Message { return &raftpb.Message{Entries: []*raftpb.Entry{{Data: make([]byte, n)}}} }
	push("room", Frame{Commands: make([]byte, 60)}, 0, nil)
	push("full", Frame{Replies: make([]byte, 60), Raft: []*raftpb.Message{message(1)}}, 0, ErrFull)
	push("room again", Frame{Renewals: make([]byte, 40)}, 0, nil)
	push("raft has its own room", Frame{Raft: []*raftpb.Message{message(1), message(1)}}, 0, nil)
	push("too many bytes", Frame{Raft: []*raftpb.Message{message(900)}}, 1, nil)
	push("too many", Frame{Raft: []*raftpb.Message{message(1), message(1)}}, 1, nil)
	push("never", Frame{Commands: make([]byte, 1<<20)}, 0, ErrTooLarge)
	if f, _, _ := q.next(); len(f.Raft) != 3 || len(f.Commands) != 60 || len(f.Replies) != 0 {
		t.Errorf("took %d raft messages, %d and %d bytes", len(f.Raft), len(f.Commands), len(f.Replies))
	}
	push("room after sending", Frame{Replies: make([]byte, 100)}, 0, nil)
	q.end(&wire.Refusal{Text: "bye"})
	push("ended", Frame{Replies: make([]byte, 1)}, 0, ErrNoLink)
	if f, ended, _ := q.next(); ended || f.Refusal.GetText() != "bye" || len(f.Replies) != 100 {
		t.Errorf("the last frame: %v %v", f, ended)
	}
	if f, ended, _ := q.next(); !ended || f != nil {
		t.Errorf("the end: %v %v", f, ended)
	}
}

// The peer's handler hangs. Memory is bounded, callers get errors, raft messages are dropped,
// renewals are sent first, and no accepted data is lost.
func TestSlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		small := func(c *Config) { c.QueueBytes, c.RaftMessages = 1<<20, 10 }
		a, b := w.node("a", 1, small), w.node("b", 2, small)
		gate := make(chan struct{})
		b.onFrame = func(Identity, Frame) { <-gate }
		a.send(b, "x")
		synctest.Wait()
		accepted, full := 1, false
		for !full {
			err := a.Send(b.peer(), Frame{Commands: make([]byte, 10_000)})
			switch {
			case errors.Is(err, ErrFull):
				full = true
			case err != nil:
				t.Fatal(err)
			default:
				accepted += 10_000
			}
			synctest.Wait()
		}
		if accepted < 1<<20 || accepted > 4<<20 {
			t.Errorf("%d bytes were accepted before ErrFull", accepted)
		}
		for i := range uint64(100) {
			if err := a.Send(b.peer(), Frame{Raft: []*raftpb.Message{raftMessage(a, b, i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if n := a.Counts().RaftDropped; n != 90 {
			t.Errorf("%d raft messages dropped", n)
		}
		time.Sleep(5 * time.Minute) // the keepalive does not end the link either
		close(gate)
		synctest.Wait()
		text, downs := commands(b.seen(), id(1))
		if len(text) != accepted || downs != 0 || len(a.seen()) != 0 {
			t.Errorf("%d bytes arrived of %d, %d downs", len(text), accepted, downs)
		}
		a.send(b, strings.Repeat("y", 1000))
	})
}

func TestRenewalsComeFirst(t *testing.T) {
	c := Config{}.withDefaults()
	q := newQueue(&c)
	for range 100 {
		_, _ = q.push(&Frame{Commands: make([]byte, 100_000), Replies: make([]byte, 100_000)})
	}
	q.next()
	_, _ = q.push(&Frame{Renewals: []byte("now")})
	f, _, _ := q.next()
	if string(f.Renewals) != "now" || proto.Size(f) > frameBytes+slackBytes {
		t.Fatalf("renewals %q in a frame of %d bytes", f.Renewals, proto.Size(f))
	}
	commands, replies := 0, 0
	for range 6 {
		f, _, _ := q.next()
		commands, replies = commands+len(f.Commands), replies+len(f.Replies)
	}
	if commands == 0 || replies == 0 {
		t.Fatalf("one kind starves: %d, %d", commands, replies)
	}
}
