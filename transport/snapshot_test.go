package transport

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func snapshotMessage(from, to *node, size int) *raftpb.Message {
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), From: &from.identity.Raft, To: &to.identity.Raft, Term: new(uint64(3)),
		Snapshot: &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(50)), Term: new(uint64(3)), ConfState: &raftpb.ConfState{Voters: []uint64{101, 102}}}},
	}
}

func TestSnapshotArrivesWhole(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		for _, size := range []int{0, 1, chunkBytes, chunkBytes + 1, 20 << 20} {
			m := snapshotMessage(a, b, size)
			before := proto.Clone(m)
			if err := a.SendSnapshot(t.Context(), b.peer(), m); err != nil {
				t.Fatal(err)
			}
			got := b.snapshots[len(b.snapshots)-1]
			if !proto.Equal(got, m) && !(size == 0 && len(got.Snapshot.Data) == 0) {
				t.Fatalf("%d bytes: what arrived differs", size)
			}
			if !proto.Equal(before, m) {
				t.Fatal("the message was changed")
			}
		}
		b.snapshot = func(Identity, *raftpb.Message) error { return errors.New("no room on disk") }
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)); err == nil || !strings.Contains(err.Error(), "no room on disk") {
			t.Fatalf("the handler's error: %v", err)
		}
		synctest.Wait()
		if c := a.Counts(); c.Shared+c.Accepted+b.Counts().Accepted != 0 {
			t.Fatalf("a connection is left: %+v", c)
		}
	})
}

func TestSnapshotThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		small := func(c *Config) { c.SnapshotBytes = 1 << 20 }
		a, b, c := w.node("a", 1), w.node("b", 2, small), w.node("c", 3, small)
		if err := c.SendSnapshot(t.Context(), b.peer(), snapshotMessage(c, b, 2<<20)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("above our own limit: %v", err)
		}
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 2<<20)); !errors.Is(err, ErrFull) {
			t.Errorf("above the peer's limit: %v", err)
		}
		if err := a.SendSnapshot(t.Context(), Peer{Instance: id(5), Addr: "b:1"}, snapshotMessage(a, b, 10)); !errors.Is(err, ErrOther) {
			t.Errorf("another instance: %v", err)
		}
		if err := a.SendSnapshot(t.Context(), Peer{Instance: id(5), Addr: "nobody:1"}, snapshotMessage(a, b, 10)); !errors.Is(err, ErrRefused) {
			t.Errorf("nobody there: %v", err)
		}
		if len(b.snapshots) != 0 {
			t.Error("a snapshot arrived")
		}
	})
}

func TestSnapshotBrokenOff(t *testing.T) {
	for _, how := range []string{"crash", "context", "sender closes", "receiver closes", "silence"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1, lagging(rand.New(&lockedSource{src: rand.NewPCG(1, 1)}), time.Millisecond)), w.node("b", 2, lagging(rand.New(&lockedSource{src: rand.NewPCG(1, 2)}), time.Millisecond))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				result := make(chan error, 1)
				go func() { result <- a.SendSnapshot(ctx, b.peer(), snapshotMessage(a, b, 20<<20)) }()
				time.Sleep(20 * time.Millisecond)
				select {
				case err := <-result:
					t.Fatalf("the test is too slow: %v", err)
				default:
				}
				switch how {
				case "crash":
					w.net.Crash("b")
				case "context":
					cancel()
				case "sender closes":
					a.Close()
				case "receiver closes":
					b.Close()
				case "silence":
					w.net.Cut("a", "b")
				}
				if err := <-result; err == nil {
					t.Fatal("no error")
				}
				time.Sleep(30 * time.Second)
				if len(b.snapshots) != 0 || len(b.Port.snapshots) != 0 || b.Counts().Accepted != 0 {
					t.Fatalf("left behind: %d snapshots, %d tokens, %+v", len(b.snapshots), len(b.Port.snapshots), b.Counts())
				}
			})
		})
	}
}

// A sender that lives and stalls may not keep one of the few places.
func TestSnapshotThatStalls(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		head, err := proto.Marshal(withoutData(snapshotMessage(a, b, 4)))
		if err != nil {
			t.Fatal(err)
		}
		for range snapshotsAtOnce {
			d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			stream, err := d.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(&wire.Chunk{Message: head, Size: 400, Data: []byte("data")})
		}
		synctest.Wait()
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)); !errors.Is(err, ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		time.Sleep(chunkPatience)
		synctest.Wait()
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)); err != nil {
			t.Error(err)
		}
	})
}

func TestSnapshotDamagedOnTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		head, err := proto.Marshal(withoutData(snapshotMessage(a, b, 4)))
		if err != nil {
			t.Fatal(err)
		}
		cases := map[string][]*wire.Chunk{
			"checksum":     {{Message: head, Size: 4, Data: []byte("data"), Last: true, Crc32C: 1}},
			"short":        {{Message: head, Size: 400, Data: []byte("data"), Last: true}},
			"long":         {{Message: head, Size: 4, Data: bytes.Repeat([]byte("data"), 100)}},
			"no last":      {{Message: head, Size: 400, Data: []byte("data")}},
			"no message":   {{Message: []byte{0xff}, Size: 4, Data: []byte("data"), Last: true}},
			"empty":        {{Last: true}},
			"no data":      {{Message: head, Last: true}},
			"absurdly big": {{Message: head, Size: 1 << 62}},
		}
		for why, chunks := range cases {
			d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
			if err != nil {
				t.Fatal(err)
			}
			stream, err := d.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range chunks {
				_ = stream.Send(chunk)
			}
			if ack, err := stream.CloseAndRecv(); err != nil || ack.Refusal == nil {
				t.Errorf("%s: %v, %v", why, ack, err)
			}
			d.close()
		}
		synctest.Wait()
		if len(b.snapshots) != 0 {
			t.Fatal("one arrived")
		}
	})
}
