package transport

import (
	"context"
	"hash/crc32"
	"io"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// FuzzHello: whatever a stream begins with, it is refused with a reason, or it is a hello for us from somebody of our cluster. What is
// said about a foreigner stays short.
func FuzzHello(f *testing.F) {
	self := Identity{Cluster: "test", Instance: 1, Group: 7, Raft: 101, Addr: "a:1"}
	for _, from := range []Identity{{Cluster: "test", Instance: 2, Group: 7, Addr: "b:1"}, {Cluster: "other", Instance: 2}, {Cluster: "test"}, {}} {
		for _, to := range []Instance{0, 1, 3} {
			b, err := proto.Marshal(from.greet(to, 1<<63))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x07})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &wire.Hello{}
		if proto.Unmarshal(b, h) != nil {
			return
		}
		r := self.refuse(h)
		if r == nil && (h.Cluster != self.Cluster || h.Instance == 0 || h.Intended != 0 && h.Intended != 1 || len(h.Addr) > maxAddr) {
			t.Fatalf("accepted %v", h)
		}
		if r != nil && (kindOf(r.Reason) == nil || len(r.Text) > 4*maxLabel) {
			t.Fatalf("refused with %v", r)
		}
		_ = self.answered("b:1", 2, h)
	})
}

// FuzzChunks feeds any chunks to the receiver of snapshots: what it hands on is whole, from whom it says, and no larger than allowed.
func FuzzChunks(f *testing.F) {
	head, err := proto.Marshal(&wire.Hello{})
	if err != nil {
		f.Fatal(err)
	}
	message := []byte{0x08, 0x07, 0x10, 101, 0x18, 102, 0x4a, 0x02, 0x12, 0x00}
	add := func(chunks ...*wire.Chunk) {
		var all []byte
		for _, c := range chunks {
			b, err := proto.Marshal(c)
			if err != nil {
				f.Fatal(err)
			}
			all = append(append(all, byte(len(b))), b...)
		}
		f.Add(all)
	}
	hello := Identity{Cluster: "test", Instance: 2, Group: 7, Raft: 102, Addr: "b:1"}.greet(1, 0)
	sum := crc32.Update(crc32.Checksum(message, castagnoli()), castagnoli(), []byte("xy"))
	add(&wire.Chunk{Hello: hello, Message: message, Size: 2, Data: []byte("x")}, &wire.Chunk{Data: []byte("y"), Last: true, Crc32C: sum})
	add(&wire.Chunk{Hello: hello, Message: message, Size: 1 << 62, Last: true})
	add(&wire.Chunk{Hello: hello, Message: head}, &wire.Chunk{Data: []byte("more")})
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			a := newWorld(t).node("a", 1, func(c *Config) { c.SnapshotBytes = 100 })
			s := &chunkStream{rest: b, conn: &accepted{listener: a.listener, gone: make(chan struct{})}}
			first, err := s.Recv()
			if err != nil {
				return
			}
			if a.self.Load().refuse(first.Hello) != nil {
				return
			}
			refusal, err := a.take(s, first)
			if len(a.snapshots) > 0 != (refusal == nil && err == nil) || len(a.snapshots) > 1 {
				t.Fatalf("%d snapshots, %v, %v", len(a.snapshots), refusal, err)
			}
			for _, m := range a.snapshots {
				if m.Snapshot == nil || len(m.Snapshot.Data) > 100 || m.GetTo() != 101 || m.GetFrom() != first.Hello.Raft {
					t.Fatalf("handed on %v", m)
				}
			}
		})
	})
}

// chunkStream is the receiving end of a stream of chunks, each behind a byte that says how long it is.
type chunkStream struct {
	grpc.ClientStreamingServer[wire.Chunk, wire.Ack]
	rest []byte
	conn *accepted
}

func (s *chunkStream) Recv() (*wire.Chunk, error) {
	if len(s.rest) == 0 {
		return nil, io.EOF
	}
	n := min(int(s.rest[0]), len(s.rest)-1)
	c := &wire.Chunk{}
	err := proto.Unmarshal(s.rest[1:1+n], c)
	s.rest = s.rest[1+n:]
	return c, err
}

func (s *chunkStream) Context() context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{Addr: acceptedAddr{nil, s.conn}})
}
