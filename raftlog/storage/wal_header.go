package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// headerBytes is the size of a segment's header: a whole block, to which no append writes.
const headerBytes = 4096

const (
	segmentMagic  = "mortiseL"
	formatVersion = 1
)

// checkpoint is the state of the log at the beginning of a segment. With it, earlier segments are
// needed only for their entries.
type checkpoint struct {
	begun     bool // an Identity was saved
	hard      *raftpb.HardState
	snapshot  *snapshotMark
	lastIndex uint64
	lastTerm  uint64
}

type header struct {
	id       raftlog.Identity
	sequence uint64 // increases by one from segment to segment
	salt     uint64
	size     uint64 // length of the file
	first    uint64 // number of the first frame
	begins   checkpoint
}

const (
	flagBegun = 1 << iota
	flagHardState
	flagSnapshot
)

// encode returns the header's bytes in the file:
//
//	magic [8]byte; version uint32; group, id, sequence, salt, size, first uint64; flags uint8;
//	term, vote, commit uint64; snapshot as in a frame; last index, last term uint64; zeros;
//	CRC32C of all of it uint32
func (h header) encode() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, headerBytes)
	b = append(b, segmentMagic...)
	b = le.AppendUint32(b, formatVersion)
	for _, v := range [...]uint64{h.id.Group, h.id.ID, h.sequence, h.salt, h.size, h.first} {
		b = le.AppendUint64(b, v)
	}
	flags := byte(0)
	var mark snapshotMark
	if h.begins.begun {
		flags |= flagBegun
	}
	if h.begins.hard != nil {
		flags |= flagHardState
	}
	if h.begins.snapshot != nil {
		flags |= flagSnapshot
		mark = *h.begins.snapshot
	}
	b = append(b, flags)
	for _, v := range [...]uint64{h.begins.hard.GetTerm(), h.begins.hard.GetVote(), h.begins.hard.GetCommit()} {
		b = le.AppendUint64(b, v)
	}
	b = mark.append(b)
	b = le.AppendUint64(b, h.begins.lastIndex)
	b = le.AppendUint64(b, h.begins.lastTerm)
	b = b[:headerBytes-4]
	return le.AppendUint32(b, checksum(b))
}

func decodeHeader(b []byte) (h header, err error) {
	if len(b) < headerBytes {
		return h, fmt.Errorf("it is only %d bytes long", len(b))
	}
	le := binary.LittleEndian
	b = b[:headerBytes]
	if le.Uint32(b[headerBytes-4:]) != checksum(b[:headerBytes-4]) {
		return h, errors.New("its header does not match its checksum")
	}
	if !bytes.HasPrefix(b, []byte(segmentMagic)) {
		return h, errors.New("it is not a log segment")
	}
	if v := le.Uint32(b[8:]); v != formatVersion {
		return h, fmt.Errorf("it has format version %d, and this version of mortise supports only %d", v, formatVersion)
	}
	r := reader{b: b[12:]}
	h = header{id: raftlog.Identity{Group: r.u64(), ID: r.u64()}, sequence: r.u64(), salt: r.u64(), size: r.u64(),
		first: r.u64()}
	flags := r.u8()
	hard := &raftpb.HardState{Term: new(r.u64()), Vote: new(r.u64()), Commit: new(r.u64())}
	mark := r.mark()
	h.begins = checkpoint{begun: flags&flagBegun != 0, lastIndex: r.u64(), lastTerm: r.u64()}
	if flags&flagHardState != 0 {
		h.begins.hard = hard
	}
	if flags&flagSnapshot != 0 {
		h.begins.snapshot = &mark
	}
	return h, nil
}

func (c checkpoint) equal(o checkpoint) bool {
	if (c.hard == nil) != (o.hard == nil) || (c.snapshot == nil) != (o.snapshot == nil) {
		return false
	}
	if c.snapshot != nil && *c.snapshot != *o.snapshot {
		return false
	}
	sameHard := c.hard.GetTerm() == o.hard.GetTerm() && c.hard.GetVote() == o.hard.GetVote() &&
		c.hard.GetCommit() == o.hard.GetCommit()
	return c.begun == o.begun && c.lastIndex == o.lastIndex && c.lastTerm == o.lastTerm && sameHard
}
