package session

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// LongestKey is the largest size of a key in a reply, in bytes. The group's limit may be lower.
const LongestKey = 4096

const maxAddrBytes = 1024

var errWire = errors.New("session: malformed bytes from a peer")

// Renewal asks the keeper to extend the lease by a TTL. Heard is the Seq of the newest renewal
// whose answer the sender has received, on any attachment. Zero means that it has received none.
// The answer to a renewal that was sent with an Attach is the Attached. The answer to any other
// renewal is a Renewed. The encoding is four varints.
type Renewal struct {
	Session lockfsm.SessionID
	Epoch   lockfsm.Epoch
	Seq     uint64
	Heard   uint64
}

// Append appends the encoding of r to b.
func (r Renewal) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(r.Session))
	b = binary.AppendUvarint(b, uint64(r.Epoch))
	b = binary.AppendUvarint(b, r.Seq)
	return binary.AppendUvarint(b, r.Heard)
}

// NextRenewal splits the first renewal off b, which must not be empty.
func NextRenewal(b []byte) (r Renewal, rest []byte, err error) {
	f := fields{b: b}
	r.Session, r.Epoch = lockfsm.SessionID(f.uvarint()), lockfsm.Epoch(f.uvarint())
	r.Seq, r.Heard = f.uvarint(), f.uvarint()
	if f.bad {
		return Renewal{}, nil, errWire
	}
	return r, f.b, nil
}

func appendUvarints(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func appendSized(b, field []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// fields reads the parts of a record. If a read goes past the end or finds an overlong varint, it
// returns zero and sets f.bad. The caller checks f.bad once, after the last read.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) count() int64 {
	v := f.uvarint()
	if v > math.MaxInt64 {
		f.bad = true
		return 0
	}
	return int64(v)
}

func (f *fields) octet() byte {
	if len(f.b) == 0 {
		f.bad = true
		return 0
	}
	v := f.b[0]
	f.b = f.b[1:]
	return v
}

// bytes returns the next n bytes without copying them.
func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) peer() (id nodeid.ID) {
	copy(id[:], f.bytes(nodeid.Size))
	return id
}

// sized reads a size of at most limit, and returns that many bytes without copying them.
func (f *fields) sized(limit uint64) []byte {
	n := f.uvarint()
	if n > limit {
		f.bad = true
		return nil
	}
	return f.bytes(n)
}

// Likely predicts the length of the next frame. The prediction falls slowly, because growing a
// buffer costs more than unused space.
func Likely(before, length int) int { return max(length, before-before/8) }

// alwaysKept is the largest capacity that Emptied keeps at any time.
const alwaysKept = 1024

// Emptied clears a slice and returns it for reuse. It returns nil for a large slice if the last
// hundred turns or so needed less than an eighth of it, so that a burst does not pin memory, and a
// crowd whose large turns are apart reuses it. likely predicts the length that a turn needs.
func Emptied[T any](s []T, likely *int) []T {
	clear(s)
	*likely = max(len(s), *likely-*likely/64)
	if cap(s) > max(alwaysKept, 8**likely) {
		return nil
	}
	return s[:0]
}
