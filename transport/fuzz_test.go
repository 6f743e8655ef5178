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

// FuzzHello sends arbitrary first messages. Each must be refused with a reason, or be a
// well-formed hello of this cluster that is signed with the key in it.
func FuzzHello(f *testing.F) {
	here, there := forge(1), forge(2)
	for _, change := range []func(*wire.Hello){
		func(*wire.Hello) {},
		func(h *wire.Hello) { h.Kind, h.Intended, h.Number = wire.Hello_CALLS, make([]byte, 16), 0 },
		func(h *wire.Hello) { h.Cluster = "other" },
		func(h *wire.Hello) { h.Version, h.Life = 3, 1<<63 },
		func(h *wire.Hello) { h.Key = key(3).Public() },
		func(h *wire.Hello) { proto.Reset(h) },
	} {
		own := there.says(func(h *wire.Hello) { h.Boot = make([]byte, bootBytes); change(h) })
		for _, g := range []*wire.Greeting{greeting(there.key, dialer, bound, own, own), {Hello: own}} {
			b, err := proto.Marshal(g)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &wire.Greeting{}
		if proto.Unmarshal(b, g) != nil {
			return
		}
		_, r := here.verify(g, dialer, bound, nil)
		if r != nil && (kindOf(r.Reason) == nil || len(r.Text) > 4*maxLabel) {
			t.Fatalf("refused with %v", r)
		}
		if _, r := here.verify(g, acceptor, bound, g.Hello); r == nil {
			t.Fatal("a signature was accepted for another hello")
		}
		// With a signature by `there`, only the content of the hello can be refused.
		g.Signature = there.key.Sign(signedBytes(dialer, bound, g.Hello, nil))
		who, r := here.verify(g, dialer, bound, nil)
		if r != nil {
			return
		}
		h := &wire.Hello{}
		if err := proto.Unmarshal(g.Hello, h); err != nil || h.Cluster != "test" || h.Version != protocol ||
			h.Life == 0 ||
			len(h.Addr) > maxAddr || who.peer.Instance != there.key.ID() || who.kind != wire.Hello_LINK &&
			who.kind != wire.Hello_CALLS {
			t.Fatalf("accepted %v", h)
		}
	})
}

// FuzzChunks sends arbitrary chunks. A delivered snapshot must be complete, from the sender that it
// names, and no larger than allowed.
func FuzzChunks(f *testing.F) {
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
	sum := crc32.Update(crc32.Checksum(message, castagnoli()), castagnoli(), []byte("xy"))
	add(&wire.Chunk{Message: message, Size: 2, Data: []byte("x")}, &wire.Chunk{Data: []byte("y"), Last: true,
		Crc32C: sum})
	add(&wire.Chunk{Message: message, Size: 1 << 62, Last: true})
	add(&wire.Chunk{Message: []byte("no message")}, &wire.Chunk{Data: []byte("more")})
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			a := newWorld(t).node("a", 1, func(c *Config) { c.SnapshotBytes = 100 })
			s := &chunkStream{rest: b, conn: &accepted{listener: a.listener, gone: make(chan struct{})}}
			first, err := s.Recv()
			if err != nil {
				return
			}
			refusal, err := a.receiveSnapshot(s, Identity{Instance: id(2), Group: 7, Raft: 102}, first)
			if len(a.snapshots) > 0 != (refusal == nil && err == nil) || len(a.snapshots) > 1 {
				t.Fatalf("%d snapshots, %v, %v", len(a.snapshots), refusal, err)
			}
			for _, m := range a.snapshots {
				if m.Snapshot == nil || len(m.Snapshot.Data) > 100 || m.GetTo() != 101 || m.GetFrom() != 102 {
					t.Fatalf("handed on %v", m)
				}
			}
		})
	})
}

// chunkStream reads chunks from bytes. One byte before each chunk contains the length of the
// chunk.
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
	return peer.NewContext(context.Background(), &peer.Peer{Addr: acceptedAddr{nil, s.conn},
		AuthInfo: greeted{self: id(1)}})
}
