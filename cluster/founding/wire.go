package founding

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The wire format of founding is a version byte, a kind byte, and fields in fixed order without
// names. Numbers are uvarints. The length precedes each text and list. Decoding is strict: it
// rejects a message that is too long, too short or has a value out of range. A later version has
// another version byte.
const (
	wireVersion = formats.Founding

	kindQuestion = 1
	kindInfo     = 2
	kindProposal = 3
	kindVerdict  = 4
	kindState    = 5 // stored in a directory, never sent
	kindVoters   = 6 // stored in a directory, never sent
	kindPrepare  = 7
	kindPrepared = 8
	kindPush     = 9
	kindPlace    = 10 // in the configurations of the log; not a message

	maxMessageBytes = 1 << 20
	maxNameBytes    = 128
	maxAddrBytes    = 300
	maxTextBytes    = 256
	maxReasonBytes  = 1024
	maxList         = 1024
	maxVoters       = 16
	maxSupersedes   = 256
	// no log gets so long; a false report with a higher number would make all true numbers look old
	maxAt = 1<<56 - 1
)

// ErrMalformed is returned for bytes that are not a message of this version.
var ErrMalformed = errors.New("founding: malformed or unknown message")

func header(b []byte, kind byte) []byte { return append(b, wireVersion, kind) }

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendDuration(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(max(d, 0)))
}

func appendIDs(b []byte, ids []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.AppendUvarint(b, id)
	}
	return b
}

func orderly(ids []uint64) bool {
	last := uint64(0)
	for _, id := range ids {
		if id <= last {
			return false
		}
		last = id
	}
	return len(ids) <= maxSupersedes
}

func sorted(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func union(a, b []uint64) []uint64 {
	all := sorted(slices.Concat(a, b))
	return all[:min(len(all), maxSupersedes)]
}

// reader decodes the fields of a message. After the first error all fields read as zero, and done
// returns the error.
type reader struct {
	b   []byte
	bad bool
}

func open(b []byte, kind byte) *reader {
	if len(b) < 2 || len(b) > maxMessageBytes || b[0] != wireVersion || b[1] != kind {
		return &reader{bad: true}
	}
	return &reader{b: b[2:]}
}

func (r *reader) fail() {
	r.b, r.bad = nil, true
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || (n > 1 && r.b[n-1] == 0) { // accept only the shortest encoding
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) upTo(limit uint64) uint64 {
	v := r.uint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) bool() bool { return r.upTo(1) == 1 }

func (r *reader) duration() time.Duration { return time.Duration(r.upTo(1<<63 - 1)) }

func (r *reader) text(limit int) string {
	n := int(r.upTo(uint64(limit)))
	if n > len(r.b) || !utf8.Valid(r.b[:n]) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// length reads the length of a list whose elements take at least size bytes each. It fails if the
// message is too short for the list, so that a short message cannot cause a large allocation.
func (r *reader) length(limit, size int) int {
	n := int(r.upTo(uint64(limit)))
	if n*size > len(r.b) {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) instance() (id nodeid.ID) {
	if len(r.b) < nodeid.Size {
		r.fail()
		return id
	}
	id, r.b = nodeid.ID(r.b[:nodeid.Size]), r.b[nodeid.Size:]
	return id
}

func (r *reader) ids(limit int) []uint64 {
	var ids []uint64
	for range r.length(limit, 1) {
		ids = append(ids, r.uint())
	}
	if !orderly(ids) {
		r.fail()
		return nil
	}
	return ids
}

func (r *reader) done() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}
