package session

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Peer is an instance: the random ID of one life of one process. Zero is nobody.
type Peer = nodeid.ID

// Target is an instance and the address at which it is reached. An empty address is allowed for an
// instance that has a link already.
type Target struct {
	Peer Peer
	Addr string
}

// maxLocalKey bounds a key on the way: a client refuses longer ones itself, and shorter ones are
// bounded by the group's own limit.
const LongestKey = 4096

// maxAddrBytes bounds the address in a redirect: a host name is at most 253 bytes long.
const maxAddrBytes = 1024

// errWire is what the decoders return for bytes that no session of ours wrote.
var errWire = errors.New("session: malformed bytes from a peer")

// Renewal asks for another TTL, and says what its sender has heard: the newest renewal that it
// knows to have arrived, by Renewed or by the Attached that answered the Attach it travelled with,
// on this attachment or an earlier one; 0 for none. Renewals travel before all else in a frame, so
// they have their own field there and their own codec: four varints each, back to back.
type Renewal struct {
	Session lockfsm.SessionID
	Epoch   lockfsm.Epoch
	Seq     uint64
	Heard   uint64
}

// Append writes r behind b.
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

// fields reads the parts of a record. A read behind the end, or of a varint that is too long, sets
// bad and returns zeros; the caller looks once at the end.
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

// count reads a number that must fit a positive int64: a duration, a wall time, a number of
// waiters.
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

// bytes reads n bytes without copying them.
func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

// peer reads the ID of an instance.
func (f *fields) peer() (id Peer) {
	copy(id[:], f.bytes(nodeid.Size))
	return id
}

// sized reads a size of at most limit and then as many bytes, without copying them.
func (f *fields) sized(limit uint64) []byte {
	n := f.uvarint()
	if n > limit {
		f.bad = true
		return nil
	}
	return f.bytes(n)
}

// Likely guesses how long the next frame of a kind will be, from what was guessed before and how
// long this one is: frames with much and with little to say take turns, and to let one grow costs
// more than the room.
func Likely(before, length int) int { return max(length, before-before/8) }
