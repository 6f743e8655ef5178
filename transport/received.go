package transport

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	tagRenewals = 2<<3 | uint64(protowire.BytesType)
	tagCommands = 3<<3 | uint64(protowire.BytesType)
	tagReplies  = 4<<3 | uint64(protowire.BytesType)
	tagRaft     = 5<<3 | uint64(protowire.BytesType)
	tagRetired  = 6<<3 | uint64(protowire.VarintType)
)

// received is a decoded frame, which a stream reuses. The values that it points to are new for each
// frame, and share no memory with the read buffer.
type received struct {
	standing  *wire.Standing
	refusal   *wire.Refusal
	words     [3][]byte // renewals, commands, replies
	raft      []*raftpb.Message
	malformed bool // a raft message cannot be decoded
	retired   bool

	packed [][]byte // encoded raft messages in the read buffer; the slice is reused
}

const packedKept = 1024

func (r *received) decode(b []byte) error {
	packed := r.packed
	*r = received{packed: packed[:0]}
	if !r.scan(b) {
		*r = received{packed: packed[:0]}
		return r.decodeAny(b)
	}
	own := make([]byte, 0, len(r.words[0])+len(r.words[1])+len(r.words[2]))
	for i, words := range r.words {
		if r.words[i] = nil; len(words) > 0 {
			own, r.words[i] = keep(own, words)
		}
	}
	r.unpack(r.packed)
	clear(r.packed) // otherwise the slice would keep the read buffer in memory
	if cap(r.packed) > packedKept {
		r.packed = nil
	}
	return nil
}

func (r *received) unpack(packed [][]byte) {
	var err error
	r.raft, err = unpack(packed)
	r.malformed = err != nil
}

// scan finds the fields of a frame without copying them. It returns false if protobuf must decode
// the frame.
func (r *received) scan(b []byte) bool {
	for len(b) > 0 {
		tag, number, piece, n := field(b)
		if n < 0 {
			return false
		}
		switch tag {
		case tagRenewals, tagCommands, tagReplies:
			word := &r.words[(tag-tagRenewals)>>3]
			if *word != nil {
				return false
			}
			*word = piece
		case tagRaft:
			if len(r.packed) == maxRaft {
				return false
			}
			r.packed = append(r.packed, piece)
		case tagRetired:
			r.retired = protowire.DecodeBool(number)
		default:
			return false
		}
		b = b[n:]
	}
	return true
}

// raftIn counts the raft messages of a frame before decoding, because decoded messages use far more
// memory. It stops when there are too many.
func raftIn(b []byte) (n int, err error) {
	for len(b) > 0 && n <= maxRaft {
		number, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return n, protowire.ParseError(size)
		}
		if number == protowire.Number(tagRaft>>3) {
			n++
		}
		b = b[size:]
	}
	return n, nil
}

func (r *received) decodeAny(b []byte) error {
	if n, err := raftIn(b); err != nil || n > maxRaft {
		return fmt.Errorf("%d raft messages in one frame, or more: %w", n, errStrange)
	}
	f := &wire.Frame{}
	if err := proto.Unmarshal(b, f); err != nil {
		return err
	}
	r.standing, r.refusal, r.retired = f.Standing, f.Refusal, f.Retired
	r.words = [3][]byte{f.Renewals, f.Commands, f.Replies}
	r.unpack(f.Raft)
	return nil
}
