package transport

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// SendSnapshot sends the raft message m, which has a snapshot, to a peer on a separate connection.
// It returns nil when the peer's handler has accepted the snapshot. It does not change m. It fails
// with the errors of Remote.Invoke, and with ErrGroup if the peer is in another group or m is not
// from this node's raft ID. During the pause after a failed dial, it fails immediately with
// ErrSilent.
func (p *Port) SendSnapshot(ctx context.Context, to nodeid.Endpoint, m *raftpb.Message) error {
	if n := len(m.GetSnapshot().GetData()); n > p.config.SnapshotBytes {
		return fmt.Errorf("%w: a snapshot of %d bytes, the limit is %d", ErrTooLarge, n, p.config.SnapshotBytes)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		return ErrClosed
	}
	p.tasks.Add(1)
	self, life := p.self.Load(), p.life
	p.mu.Unlock()
	defer p.tasks.Done()
	defer context.AfterFunc(life, cancel)()

	var d *dialed
	err := p.attempt(ctx, ctx, to.Addr, to.ID, func() (err error) {
		d, err = p.connect(ctx, self, to.Addr, to.ID)
		return err
	})
	if err != nil {
		return err
	}
	defer d.close()
	if life.Err() != nil { // ctx may end slightly later
		return p.outlived(to.Addr)
	}
	ack, err := p.sendSnapshot(ctx, d, m)
	switch {
	case life.Err() != nil:
		return p.outlived(to.Addr)
	case err != nil:
		return d.explain(ctx, err)
	case ack.Refusal != nil:
		return refused(to.Addr, ack.Refusal)
	}
	return nil
}

func (p *Port) sendSnapshot(ctx context.Context, d *dialed, m *raftpb.Message) (*wire.Ack, error) {
	stream, err := d.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	head, err := proto.Marshal(withoutData(m))
	if err != nil {
		return nil, err
	}
	data := m.GetSnapshot().GetData()
	chunk := &wire.Chunk{Message: head, Size: uint64(len(data))}
	sum := crc32.Update(crc32.Checksum(head, castagnoli()), castagnoli(), data)
	for {
		n := min(len(data), pieceBytes)
		chunk.Data, data = data[:n], data[n:]
		chunk.Last = len(data) == 0
		if chunk.Last {
			chunk.Crc32C = sum
		}
		if err := stream.Send(chunk); err != nil || chunk.Last {
			return stream.CloseAndRecv() // returns a more precise error than Send
		}
		chunk = &wire.Chunk{}
	}
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// withoutData returns a copy of m without the data of the snapshot. The copy includes fields of
// later versions of raft.
func withoutData(m *raftpb.Message) *raftpb.Message {
	out := &raftpb.Message{}
	shallow(out.ProtoReflect(), m.ProtoReflect(), "snapshot")
	if m.Snapshot != nil {
		out.Snapshot = &raftpb.Snapshot{}
		shallow(out.Snapshot.ProtoReflect(), m.Snapshot.ProtoReflect(), "data")
	}
	return out
}

func shallow(to, from protoreflect.Message, except protoreflect.Name) {
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Name() != except {
			to.Set(field, value)
		}
		return true
	})
}

type snapshotStream = grpc.ClientStreamingServer[wire.Chunk, wire.Ack]

// take receives a snapshot. It checks the sender before and after it gathers the data, because this
// node may have changed its group in the meantime.
func (p *base) receiveSnapshot(stream snapshotStream, from Identity, first *wire.Chunk) (*wire.Refusal, error) {
	m := &raftpb.Message{}
	if first.Size > uint64(p.config.SnapshotBytes) {
		text := fmt.Sprintf("a snapshot of %d bytes, the limit here is %d", first.Size, p.config.SnapshotBytes)
		return &wire.Refusal{Reason: wire.Refusal_FULL, Text: text}, nil
	}
	if err := proto.Unmarshal(first.Message, m); err != nil || m.Snapshot == nil || m.GetType() != raftpb.MsgSnap {
		return malformed("not a raft snapshot message"), nil
	}
	if refusal := p.maySend(from, m); refusal != nil {
		return refusal, nil
	}
	if p.holds.snapshots.Take(from.claimant(), 1) != nil {
		return &wire.Refusal{Reason: wire.Refusal_FULL, Text: "other snapshots are coming in"}, nil
	}
	defer p.holds.snapshots.Give(from.claimant(), 1)
	data, refusal, err := p.collect(stream, from.claimant(), first)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if _, refusal := p.caller(stream.Context()); refusal != nil { // this incarnation may have ended
		return refusal, nil
	}
	if refusal := p.maySend(from, m); refusal != nil {
		return refusal, nil
	}
	m.Snapshot.Data = data
	if err := p.config.Handler.Snapshot(from, m); err != nil {
		return &wire.Refusal{Reason: wire.Refusal_FAILED, Text: clip(err.Error())}, nil
	}
	return nil, nil
}

func malformed(text string) *wire.Refusal {
	return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: text}
}

func (p *base) maySend(from Identity, m *raftpb.Message) *wire.Refusal {
	self := p.self.Load()
	if self.Group == 0 || from.Group != self.Group || !owns(self, from, m) {
		text := fmt.Sprintf("from group %x and raft ID %x, this is group %x and raft ID %x",
			from.Group, from.Raft, self.Group, self.Raft)
		return &wire.Refusal{Reason: wire.Refusal_GROUP, Text: text}
	}
	if err := p.config.Handler.MaySendSnapshot(from, m); err != nil {
		return &wire.Refusal{Reason: wire.Refusal_FAILED, Text: clip(err.Error())}
	}
	return nil
}

// collect gathers the data of a snapshot. It closes the connection if the sender stalls, or is on
// average slower than `slowest`.
func (p *base) collect(stream snapshotStream, from fair.Identity, chunk *wire.Chunk) ([]byte, *wire.Refusal, error) {
	size, sum := chunk.Size, crc32.Checksum(chunk.Message, castagnoli())
	conn, _ := acceptedOn(remoteOf(stream.Context()))
	began := time.Now()
	patience := time.AfterFunc(chunkPatience, func() { conn.Close() })
	defer patience.Stop()
	var data []byte
	held := 0
	defer func() { p.holds.states.Give(from, held) }()
	for {
		if uint64(len(data)+len(chunk.Data)) > size {
			return nil, malformed("more data than announced"), nil
		}
		if room := roomFor(len(data)+len(chunk.Data), held, int(size)); room > held {
			if p.holds.states.Take(from, room-held) != nil {
				return nil, &wire.Refusal{Reason: wire.Refusal_FULL, Text: "other snapshots are coming in"}, nil
			}
			held = room
			data = append(make([]byte, 0, room), data...)
		}
		data = append(data, chunk.Data...)
		sum = crc32.Update(sum, castagnoli(), chunk.Data)
		if chunk.Last {
			break
		}
		patience.Reset(min(chunkPatience, max(0, allowance(snapshotGrace, uint64(len(data)))-time.Since(began))))
		var err error
		if chunk, err = stream.Recv(); errors.Is(err, io.EOF) {
			return nil, malformed("the snapshot ends before its last chunk"), nil
		} else if err != nil {
			return nil, nil, err
		}
	}
	if uint64(len(data)) != size || sum != chunk.Crc32C {
		return nil, malformed("the snapshot's checksum or size is wrong"), nil
	}
	return data, nil, nil
}

// roomFor returns the new capacity of the buffer for a snapshot. The present capacity is `room`.
// The snapshot has `size` bytes, and the first `need` bytes have arrived. The capacity doubles
// until a quarter has arrived, so announcing a large size costs no memory. After that, the capacity
// is `size`, so that two large buffers never exist simultaneously.
func roomFor(need, room, size int) int {
	switch {
	case need <= room:
		return room
	case need >= size/4:
		return size
	}
	return min(max(need, 2*room, pieceBytes), max(need, size/4))
}
