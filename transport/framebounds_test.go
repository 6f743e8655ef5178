package transport

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
	"go.etcd.io/raft/v3/raftpb"
)

func TestFramesAtTheirBounds(t *testing.T) {
	slow.UnderRace(t)
	limits.AtMost(t, "maxAddr", maxAddr, func(n int) bool {
		return new(link).learn(&wire.Standing{Addr: strings.Repeat("a", n)}) == nil
	})
	limits.AtMost(t, "maxRaft", maxRaft, func(n int) bool {
		r := new(received)
		return r.decode(bytes.Repeat(protowire.AppendBytes([]byte{byte(tagRaft)}, nil), n)) == nil && len(r.raft) == n
	})
	one := func(m *raftpb.Message) bool {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = unpack([][]byte{b})
		return err == nil
	}
	limits.AtMost(t, "maxEntries", maxEntries, func(n int) bool {
		m := &raftpb.Message{Type: raftpb.MsgApp.Enum()}
		for range n {
			m.Entries = append(m.Entries, &raftpb.Entry{Term: new(uint64(1))})
		}
		return one(m)
	})
	limits.AtMost(t, "maxStrange", maxStrange, func(n int) bool {
		m := &raftpb.Message{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{}}
		m.Snapshot.Data = make([]byte, n-proto.Size(m)-8)
		m.Snapshot.Data = make([]byte, len(m.Snapshot.Data)+n-proto.Size(m))
		return proto.Size(m) == n && one(m)
	})
}

// Pieces that fit into a frame together go in one.
func TestAFilledFrameAtItsBound(t *testing.T) {
	const first = 1000
	for name, frame := range map[string]func(n int) Frame{
		"commands": func(n int) Frame { return Frame{Commands: make([]byte, n)} },
		"replies":  func(n int) Frame { return Frame{Replies: make([]byte, n)} },
		"renewals": func(n int) Frame { return Frame{Renewals: make([]byte, n)} },
		"raft": func(n int) Frame {
			m := &raftpb.Message{}
			m.Context = make([]byte, n-raftSize(m))
			return Frame{Raft: []*raftpb.Message{m}}
		},
	} {
		limits.AtMost(t, "frameBytes of "+name, frameBytes, func(n int) bool {
			c := Config{}.withDefaults()
			q := newQueue(&c)
			for _, size := range []int{first, n - first} {
				f := frame(size)
				if _, err := q.push(&f); err != nil {
					t.Fatal(err)
				}
			}
			_, _, _ = q.next()
			left, _, _ := q.next()
			return left == nil
		})
	}
	limits.AtMost(t, "frameBytes of packets", frameBytes, func(n int) bool {
		g := &Gossip{packeters: map[string]*packeter{"a:1": {wake: make(chan struct{}, 1)}}}
		return g.enqueue("a:1", make([]byte, first)) && g.enqueue("a:1", make([]byte, n-first))
	})
}
