package transport

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"go.etcd.io/raft/v3/raftpb"
)

// append1 returns the raft message that a leader sends for one lock, with an entry of 60 bytes.
func append1() *raftpb.Message {
	return &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: new(uint64(101)), From: new(uint64(102)), Term: new(uint64(3)),
		LogTerm: new(uint64(3)),
		Index:   new(uint64(1 << 20)), Commit: new(uint64(1 << 20)),
		Entries: []*raftpb.Entry{{Term: new(uint64(3)), Index: new(uint64(1<<20 + 1)),
			Data: bytes.Repeat([]byte("x"), 60)}},
	}
}

// Generated code needed about 30 allocations for a frame with a raft message, a command and a
// reply.
func TestFramesAllocateLittle(t *testing.T) {
	q := newQueue(new(Config{}.withDefaults()))
	turn := Frame{Commands: []byte("a command"), Replies: []byte("a reply"), Raft: []*raftpb.Message{append1()}}
	out := &sink{}
	sender := &stream{conn: out, opens: true}
	encode := func() {
		if dropped, err := q.push(&turn); dropped > 0 || err != nil {
			t.Fatal(dropped, err)
		}
		f, _, _ := q.next()
		out.Reset()
		if err := sender.send(f); err != nil {
			t.Fatal(err)
		}
	}
	encode()
	bytes := out.Bytes()[lengthBytes:]
	in := &received{}
	decode := func() {
		if err := in.decode(bytes); err != nil || len(in.raft) != 1 || len(in.raft[0].Entries) != 1 {
			t.Fatal(err, in)
		}
	}
	if n := testing.AllocsPerRun(1000, encode); n > 1 {
		t.Errorf("%v allocations for sending a frame", n)
	}
	if n := testing.AllocsPerRun(1000, decode); n > 4 {
		t.Errorf("%v allocations for receiving a frame", n)
	}
}

// sink is a connection that buffers written data and reads from that buffer.
type sink struct {
	net.Conn
	bytes.Buffer
}

func (s *sink) Read(b []byte) (int, error)  { return s.Buffer.Read(b) }
func (s *sink) Write(b []byte) (int, error) { return s.Buffer.Write(b) }

// hearing is a handler that only calls a function for each frame.
type hearing struct {
	Handler
	heard func()
}

func (e *hearing) Frame(Identity, Frame) { e.heard() }
func (e *hearing) Down(Identity, error)  {}

func BenchmarkFrame(b *testing.B) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	got := make(chan struct{}, 1)
	var ports [2]*Port
	var peers [2]nodeid.Endpoint
	listeners := [2]net.Listener{listen(), listen()}
	words := func(from int) Frame {
		m := append1()
		*m.From, *m.To = uint64(101+from), uint64(102-from)
		return Frame{Commands: []byte("a command"), Replies: []byte("a reply"), Raft: []*raftpb.Message{m}}
	}
	answer := words(1)
	for i, l := range listeners {
		self := instance(i+1, l.Addr().String())
		peers[i] = nodeid.Endpoint{ID: self.Instance(), Addr: self.Addr}
		e := &hearing{heard: func() { got <- struct{}{} }}
		if i == 1 {
			e.heard = func() {
				if err := ports[1].Send(peers[0], answer); err != nil {
					b.Error(err)
				}
			}
		}
		p, err := New(Config{Cluster: "test", Self: self, Listener: l,
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			}, Handler: e})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = p.Close() })
		ports[i] = p
	}
	question := words(0)
	b.ReportAllocs()
	for b.Loop() {
		if err := ports[0].Send(peers[1], question); err != nil {
			b.Fatal(err)
		}
		<-got
	}
}
