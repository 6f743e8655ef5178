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
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
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
		Snapshot: &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(50)),
			Term: new(uint64(3)), ConfState: &raftpb.ConfState{Voters: []uint64{101, 102}}}},
	}
}

func TestSnapshotArrivesWhole(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		for _, size := range []int{0, 1, pieceBytes, pieceBytes + 1, 20 << 20} {
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
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)); err == nil ||
			!strings.Contains(err.Error(), "no room on disk") {
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
		if err := a.SendSnapshot(t.Context(), nodeid.Endpoint{ID: id(5), Addr: "b:1"},
			snapshotMessage(a, b, 10)); !errors.Is(err, ErrOther) {
			t.Errorf("another instance: %v", err)
		}
		if err := a.SendSnapshot(t.Context(), nodeid.Endpoint{ID: id(5), Addr: "nowhere:1"},
			snapshotMessage(a, b, 10)); !errors.Is(err, ErrRefused) {
			t.Errorf("no process there: %v", err)
		}
		if len(b.snapshots) != 0 {
			t.Error("a snapshot arrived")
		}
	})
}

func TestSnapshotBrokenOff(t *testing.T) {
	slow.UnderRace(t)
	for _, how := range []string{"crash", "context", "sender closes", "receiver closes", "silence"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1, lagging(rand.New(&lockedSource{src: rand.NewPCG(1, 1)}), time.Millisecond)),
					w.node("b", 2, lagging(rand.New(&lockedSource{src: rand.NewPCG(1, 2)}), time.Millisecond))
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
				if len(b.snapshots) != 0 || b.holds.snapshots.Total() != 0 || b.Counts().Accepted != 0 {
					t.Fatalf("left behind: %d snapshots, %d tokens, %+v", len(b.snapshots), b.holds.snapshots.Total(),
						b.Counts())
				}
			})
		})
	}
}

// A sender that stalls uses only one of the places for snapshots, and only until chunkPatience has
// passed.
func TestSnapshotThatStalls(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c, d := w.node("a", 1), w.node("b", 2), w.node("c", 3), w.node("d", 4)
		for _, slow := range []*node{a, c} {
			slow.halfASnapshot(b, 400)
		}
		synctest.Wait()
		for _, n := range []*node{a, d} {
			if err := n.SendSnapshot(t.Context(), b.peer(), snapshotMessage(n, b, 10)); !errors.Is(err, ErrFull) {
				t.Errorf("one too many: %v", err)
			}
		}
		time.Sleep(chunkPatience)
		synctest.Wait()
		for _, n := range []*node{a, d} {
			if err := n.SendSnapshot(t.Context(), b.peer(), snapshotMessage(n, b, 10)); err != nil {
				t.Error(err)
			}
		}
	})
}

func (n *node) halfASnapshot(to *node, size int) grpc.ClientStreamingClient[wire.Chunk, wire.Ack] {
	n.t.Helper()
	head, err := proto.Marshal(withoutData(snapshotMessage(n, to, 4)))
	if err != nil {
		n.t.Fatal(err)
	}
	d, err := n.connect(n.t.Context(), &n.self, to.identity.Addr, to.identity.Instance)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(d.close)
	stream, err := d.Snapshot(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	first := &wire.Chunk{Message: head, Size: uint64(size), Data: []byte("data")}
	if err := stream.Send(first); err != nil {
		n.t.Fatal(err)
	}
	return stream
}

func TestOneSnapshotFromEachInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		for range 5 {
			a.halfASnapshot(b, 1<<20)
		}
		synctest.Wait()
		if n := b.holds.snapshots.Total(); n != 1 {
			t.Errorf("one instance has %d places", n)
		}
		if err := c.SendSnapshot(t.Context(), b.peer(), snapshotMessage(c, b, 1<<20)); err != nil {
			t.Errorf("beside a slow one: %v", err)
		}
	})
}

func TestSnapshotThatTrickles(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		stream := a.halfASnapshot(b, 1<<30)
		began := time.Now()
		for stream.Send(&wire.Chunk{Data: []byte("x")}) == nil {
			if time.Sleep(10 * time.Second); time.Since(began) > 10*time.Minute {
				t.Fatal("it has kept its place for ten minutes")
			}
		}
		if took := time.Since(began); took > 2*snapshotGrace {
			t.Errorf("it has kept its place for %v", took)
		}
		if n := b.holds.snapshots.Total(); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

func TestSnapshotIsJudgedOnItsFirstChunk(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b := w.node("b", 2)
		b.may = func(from Identity, m *raftpb.Message) error {
			if m.Snapshot == nil || len(m.Snapshot.Data) > 0 {
				t.Error("it is asked about something else")
			}
			if from.Instance == id(5) {
				return errors.New("the configuration does not name it")
			}
			return nil
		}
		other := func(c *Config) { c.Self.Group = 8 }
		cases := map[string]struct {
			n    *node
			want wire.Refusal_Reason
		}{
			"another group": {w.node("a", 1, other), wire.Refusal_GROUP},
			"no raft ID":    {w.node("c", 3, func(c *Config) { c.Self.Raft = 0 }), wire.Refusal_GROUP},
			"no voter":      {w.node("e", 5), wire.Refusal_FAILED},
		}
		for why, c := range cases {
			stream := c.n.halfASnapshot(b, 1<<30)
			synctest.Wait()
			if n := b.holds.snapshots.Total(); n != 0 {
				t.Errorf("%s: %d places are taken", why, n)
			}
			ack := &wire.Ack{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			stop := context.AfterFunc(ctx, func() { _ = stream.CloseSend() })
			if err := stream.RecvMsg(ack); err != nil || ack.Refusal.GetReason() != c.want {
				t.Errorf("%s: %v, %v", why, ack, err)
			}
			if !stop() {
				t.Errorf("%s: it was answered only at its end", why)
			}
			cancel()
		}
	})
}

func TestRoomForASnapshot(t *testing.T) {
	const size = 100 << 20
	room, most := 0, 0
	for need := pieceBytes; need <= size; need += pieceBytes {
		before := room
		room = roomFor(need, room, size)
		if room > before {
			most = max(most, room+before)
		}
		if room < need || room > size || room > 4*need+4*pieceBytes {
			t.Fatalf("room for %d after %d bytes", room, need)
		}
	}
	if most > size*5/4 {
		t.Errorf("%d bytes are allocated at one moment", most)
	}
}

func TestSnapshotsTogetherAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		small := func(c *Config) { c.SnapshotBytes = 1 << 20 }
		a, b, c := w.node("a", 1), w.node("b", 2, small), w.node("c", 3)
		stream := a.halfASnapshot(b, 3<<18)
		_ = stream.Send(&wire.Chunk{Data: make([]byte, pieceBytes)})
		_ = stream.Send(&wire.Chunk{Data: make([]byte, pieceBytes)})
		_ = stream.Send(&wire.Chunk{Data: make([]byte, pieceBytes)})
		synctest.Wait()
		if err := c.SendSnapshot(t.Context(), b.peer(), snapshotMessage(c, b, 3<<18)); !errors.Is(err, ErrFull) {
			t.Errorf("more than there is: %v", err)
		}
		if err := c.SendSnapshot(t.Context(), b.peer(), snapshotMessage(c, b, 1<<18)); err != nil {
			t.Errorf("what is left: %v", err)
		}
		time.Sleep(chunkPatience)
		synctest.Wait()
		if err := c.SendSnapshot(t.Context(), b.peer(), snapshotMessage(c, b, 3<<18)); err != nil {
			t.Errorf("after the other one: %v", err)
		}
		if n := b.holds.states.Total(); n != 0 {
			t.Errorf("%d bytes are held", n)
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
