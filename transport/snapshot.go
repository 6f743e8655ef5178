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

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	chunkBytes      = 256 << 10
	snapshotsAtOnce = 2                // that come in; each may take SnapshotBytes of memory
	chunkPatience   = 15 * time.Second // for the next chunk of a snapshot that comes in
)

// SendSnapshot carries a raft message with a snapshot to a peer, on a connection of its own, and returns when the peer's handler has
// taken it or why it has not. m is only read. Errors as of Ask, and ErrGroup if the peer is in another group or the message is not from
// our raft ID.
func (p *Port) SendSnapshot(ctx context.Context, to Peer, m *raftpb.Message) error {
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

	d, err := p.connect(ctx, self, to.Addr, to.Instance)
	if err != nil {
		return err
	}
	defer d.close()
	if life.Err() != nil { // ctx ends a moment after it
		return p.outlived(to.Addr)
	}
	ack, err := p.pour(ctx, d, m)
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

// pour sends the chunks and returns the answer.
func (p *Port) pour(ctx context.Context, d *dialed, m *raftpb.Message) (*wire.Ack, error) {
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
		n := min(len(data), chunkBytes)
		chunk.Data, data = data[:n], data[n:]
		chunk.Last = len(data) == 0
		if chunk.Last {
			chunk.Crc32C = sum
		}
		if err := stream.Send(chunk); err != nil || chunk.Last {
			return stream.CloseAndRecv() // knows more than the error of Send
		}
		chunk = &wire.Chunk{}
	}
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// withoutData copies m, all but the data of its snapshot, which may be a gigabyte. Fields that a later raft adds are copied too.
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

// Snapshot takes a snapshot that a peer sends.
func (s *service) Snapshot(stream grpc.ClientStreamingServer[wire.Chunk, wire.Ack]) error {
	p := s.port
	first, err := firstOf(p, stream.Context(), stream.Recv)
	if err != nil {
		return err
	}
	from, refusal := p.caller(stream.Context())
	if refusal == nil {
		select {
		case p.snapshots <- struct{}{}:
			defer func() { <-p.snapshots }()
			refusal, err = p.take(stream, from, first)
		default:
			refusal = &wire.Refusal{Reason: wire.Refusal_FULL, Text: "other snapshots are coming in"}
		}
	}
	if err != nil {
		return err
	}
	if refusal != nil {
		p.noteRefusal("transport: refused a snapshot", from, remoteOf(stream.Context()), refusal)
	}
	return stream.SendAndClose(&wire.Ack{Refusal: refusal})
}

// take collects the chunks; memory is taken as they arrive, whatever size was announced.
func (p *Port) take(stream grpc.ClientStreamingServer[wire.Chunk, wire.Ack], from Identity, chunk *wire.Chunk) (*wire.Refusal, error) {
	malformed := func(text string) (*wire.Refusal, error) {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: text}, nil
	}
	size := chunk.Size
	if size > uint64(p.config.SnapshotBytes) {
		return &wire.Refusal{Reason: wire.Refusal_FULL, Text: fmt.Sprintf("a snapshot of %d bytes, the limit here is %d", size, p.config.SnapshotBytes)}, nil
	}
	m := &raftpb.Message{}
	if err := proto.Unmarshal(chunk.Message, m); err != nil || m.Snapshot == nil || m.GetType() != raftpb.MsgSnap {
		return malformed("not a raft snapshot message")
	}
	sum := crc32.Checksum(chunk.Message, castagnoli())
	conn, _ := acceptedOn(remoteOf(stream.Context()))
	patience := time.AfterFunc(chunkPatience, func() { conn.Close() })
	defer patience.Stop()
	var data []byte
	for {
		if uint64(len(data)+len(chunk.Data)) > size {
			return malformed("more data than announced")
		}
		data = append(data, chunk.Data...)
		sum = crc32.Update(sum, castagnoli(), chunk.Data)
		if chunk.Last {
			break
		}
		var err error
		if chunk, err = stream.Recv(); errors.Is(err, io.EOF) {
			return malformed("it ends before its last chunk")
		} else if err != nil {
			return nil, err
		}
		patience.Reset(chunkPatience)
	}
	patience.Stop()
	if uint64(len(data)) != size || sum != chunk.Crc32C {
		return malformed("what arrived is not what was sent")
	}
	m.Snapshot.Data = data
	if _, refusal := p.caller(stream.Context()); refusal != nil { // our life may have ended while it came
		return refusal, nil
	}
	self := p.self.Load()
	if self.Group == 0 || from.Group != self.Group || !owns(self, from, m) {
		return &wire.Refusal{Reason: wire.Refusal_GROUP, Text: fmt.Sprintf("from group %x and raft ID %x, this is group %x and raft ID %x", from.Group, from.Raft, self.Group, self.Raft)}, nil
	}
	if err := p.config.Handler.Snapshot(from, m); err != nil {
		return &wire.Refusal{Reason: wire.Refusal_FAILED, Text: clip(err.Error())}, nil
	}
	return nil, nil
}
