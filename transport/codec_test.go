package transport

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// random fills some fields of a message of any type.
func random(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case r.IntN(3) == 0:
		case f.Message() != nil && (depth == 0 || r.IntN(4) > 0 && f.Name() != "entries"):
		case f.IsList():
			list := m.Mutable(f).List()
			for range r.IntN(4) {
				if f.Message() != nil {
					random(r, list.AppendMutable().Message(), depth-1)
				} else {
					list.Append(value(r, f))
				}
			}
		case f.Message() != nil:
			random(r, m.Mutable(f).Message(), depth-1)
		default:
			m.Set(f, value(r, f))
		}
	}
	if r.IntN(40) == 0 {
		m.SetUnknown(protoreflect.RawFields{0xf8, 0x01, byte(r.IntN(128))}) // unknown field: number 31, a varint
	}
}

func value(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := r.Uint64() >> r.IntN(64)
	switch f.Kind() {
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n)))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n&1 == 1)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(bytes.Repeat([]byte{byte(n)}, r.IntN(200)))
	}
	return protoreflect.ValueOfUint64(n)
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameMessage compares the hand-written decoder with the decoder of protobuf on arbitrary bytes,
// and the two encoders on the decoded message.
func sameMessage(t *testing.T, b []byte) {
	t.Helper()
	want := &raftpb.Message{}
	wantErr := proto.Unmarshal(b, want)
	given := bytes.Clone(b)
	got, err := unpack([][]byte{given})
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%x: %v, protobuf says %v", b, err, wantErr)
	}
	if err != nil {
		return
	}
	for i := range given {
		given[i] ^= 0xff // as when the buffer is reused
	}
	if !proto.Equal(got[0], want) {
		t.Fatalf("%x: got %v, want %v", b, got[0], want)
	}
	out, err := appendMessage([]byte("before"), got[0])
	if err != nil || string(out[:6]) != "before" || !bytes.Equal(out[6:], marshal(t, want)) {
		t.Fatalf("%v: encoded %x, %v", want, out, err)
	}
}

// Builds with different encoders can communicate only if the hand-written encoder and decoder
// have the same results as those of protobuf.
func TestRaftMessagesAreProtobuf(t *testing.T) {
	slow.UnderRace(t)
	r := rand.New(rand.NewPCG(1, 2))
	byHand := 0
	for range 20_000 {
		m := &raftpb.Message{}
		random(r, m.ProtoReflect(), 2)
		if isPlain(m) {
			byHand++
		}
		b := marshal(t, m)
		sameMessage(t, b)
		if len(b) > 0 {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			sameMessage(t, b)
			sameMessage(t, b[:r.IntN(len(b))])
		}
	}
	if byHand < 1000 {
		t.Errorf("only %d messages could be encoded by hand", byHand)
	}
}

func sameFrame(t *testing.T, b []byte) {
	t.Helper()
	want := &wire.Frame{}
	wantErr := proto.Unmarshal(b, want)
	given := bytes.Clone(b)
	got := &received{}
	err := got.decode(given)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%x: %v, protobuf says %v", b, err, wantErr)
	}
	if err != nil {
		return
	}
	for i := range given {
		given[i] ^= 0xff
	}
	raft, ok := got.raft, !got.malformed
	for i, packed := range want.Raft {
		m := &raftpb.Message{}
		if err := proto.Unmarshal(packed, m); err != nil {
			if ok {
				t.Fatalf("%x: accepted raft message %x", b, packed)
			}
			break
		}
		if ok && !proto.Equal(m, raft[i]) {
			t.Fatalf("%x: got %v, want %v", b, raft[i], m)
		}
	}
	if ok && len(raft) != len(want.Raft) || got.retired != want.Retired ||
		!proto.Equal(got.standing, want.Standing) || !proto.Equal(got.refusal, want.Refusal) ||
		!bytes.Equal(got.words[0], want.Renewals) || !bytes.Equal(got.words[1], want.Commands) ||
		!bytes.Equal(got.words[2], want.Replies) {
		t.Fatalf("%x: got %+v, want %v", b, got, want)
	}
	if want.Standing != nil || want.Refusal != nil || len(want.ProtoReflect().GetUnknown()) > 0 {
		return
	}
	if out := appendFrame(nil, want); !bytes.Equal(out, marshal(t, want)) || len(out) > frameSize(want) {
		t.Fatalf("%v: encoded %x", want, out)
	}
}

func randomFrame(t testing.TB, r *rand.Rand) []byte {
	f := &wire.Frame{Retired: r.IntN(4) == 0}
	for _, words := range []*[]byte{&f.Renewals, &f.Commands, &f.Replies} {
		if r.IntN(2) == 0 {
			*words = bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(3000))
		}
	}
	for range r.IntN(4) {
		m := &raftpb.Message{}
		random(r, m.ProtoReflect(), 1)
		f.Raft = append(f.Raft, marshal(t, m))
	}
	if r.IntN(4) == 0 {
		f.Standing = &wire.Standing{Group: 7, Raft: 102, Addr: "b:1"}
	}
	return marshal(t, f)
}

func TestFramesAreProtobuf(t *testing.T) {
	slow.UnderRace(t)
	r := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		b := randomFrame(t, r)
		sameFrame(t, b)
		if len(b) > 0 {
			b[r.IntN(min(len(b), 20))] ^= 1 << r.IntN(8)
			sameFrame(t, b)
			sameFrame(t, b[:r.IntN(len(b))])
		}
	}
	twice := []byte{0x1a, 1, 'a', 0x1a, 0, 0x1a, 1, 'b', 0x22, 0, 0x30, 1, 0x30, 0}
	sameFrame(t, twice)
	sameFrame(t, twice[:5])
}

func FuzzRaftMessages(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		m := &raftpb.Message{}
		random(r, m.ProtoReflect(), 2)
		f.Add(marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameMessage(t, b) })
}

func FuzzFrameBytes(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		f.Add(randomFrame(f, r))
	}
	f.Fuzz(func(t *testing.T, b []byte) { sameFrame(t, b) })
}

func TestALargeListIsGivenBack(t *testing.T) {
	b := bytes.Repeat([]byte{byte(tagRaft), 0}, 10_000)
	in := &received{}
	if err := in.decode(b); err != nil || len(in.raft) != 10_000 || in.packed != nil {
		t.Fatal(err, len(in.raft), cap(in.packed))
	}
}
