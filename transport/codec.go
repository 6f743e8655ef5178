package transport

import (
	"google.golang.org/grpc/encoding"
	protobuf "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// codec is protobuf's for gRPC, with code of our own for the frames of links: each is built in one buffer of gRPC's pool and read out of
// the one that it came in. It is given to each server and call by name; to register it would change all gRPC of the program.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protobuf.Name)} }

// smallestPooled makes gRPC give even a small frame's buffer back to its pool.
const smallestPooled = 4 << 10

// Marshal is encoding.CodecV2's.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*wire.Frame)
	if !ok || f.Hello != nil || f.Refusal != nil {
		return c.CodecV2.Marshal(v)
	}
	pool := mem.DefaultBufferPool()
	b := pool.Get(max(frameSize(f), smallestPooled))
	*b = appendFrame((*b)[:0], f)
	return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
}

// Unmarshal is encoding.CodecV2's.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*received)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if len(data) == 1 {
		return r.decode(data[0].ReadOnlyData())
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return r.decode(b.ReadOnlyData())
}

// frameSize is at least the size of f, a frame without hello and refusal.
func frameSize(f *wire.Frame) int {
	const head = 1 + 10 // of a field
	n := 4*head + len(f.Renewals) + len(f.Commands) + len(f.Replies)
	for _, m := range f.Raft {
		n += head + len(m)
	}
	return n
}

// appendFrame appends f as protobuf would, byte by byte.
func appendFrame(b []byte, f *wire.Frame) []byte {
	b = appendWords(b, tagRenewals, f.Renewals)
	b = appendWords(b, tagCommands, f.Commands)
	b = appendWords(b, tagReplies, f.Replies)
	for _, m := range f.Raft {
		b = protowire.AppendBytes(append(b, byte(tagRaft)), m)
	}
	if f.Retired {
		b = append(b, byte(tagRetired), 1)
	}
	return b
}

func appendWords(b []byte, tag uint64, words []byte) []byte {
	if len(words) == 0 {
		return b
	}
	return protowire.AppendBytes(append(b, byte(tag)), words)
}
