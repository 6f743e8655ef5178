package storage

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// The items of a frame. Each is a byte for its kind and fields of fixed width, little-endian:
//
//	1 identity   group, id uint64
//	2 hard state term, vote, commit uint64
//	3 snapshot   index, term uint64; keeps uint8 (1 keeps the entries behind it);
//	             file, length uint64; CRC32C uint32
//	4 entries    first index uint64, count uint32;
//	             for each: term uint64, type uint8, length uint32, data
//	5 mark       no fields; written at open and close, to prove that the frame before was durable
//	6 seal       next uint64: sequence of the segment in which the log continues
//
// They take effect in this order, which is that of a Batch. 0 ends the items; only zeros follow.
const (
	itemEnd byte = iota
	itemIdentity
	itemHardState
	itemSnapshot
	itemEntries
	itemMark
	itemSeal
)

const entryHeadBytes = 8 + 1 + 4

// snapshotMark names the snapshot in effect, with the number, length and checksum of its file.
type snapshotMark struct {
	index, term  uint64
	file, length uint64
	sum          uint32
}

type items struct {
	identity *raftlog.Identity
	hard     *raftpb.HardState
	snapshot *snapshotMark
	keeps    bool
	first    uint64 // index of the first entry
	entries  []*raftpb.Entry
	seal     uint64 // sequence of the next segment. Zero means no seal
}

func appendIdentity(b []byte, id raftlog.Identity) []byte {
	b = append(b, itemIdentity)
	b = binary.LittleEndian.AppendUint64(b, id.Group)
	return binary.LittleEndian.AppendUint64(b, id.ID)
}

func appendHardState(b []byte, hs *raftpb.HardState) []byte {
	b = append(b, itemHardState)
	b = binary.LittleEndian.AppendUint64(b, hs.GetTerm())
	b = binary.LittleEndian.AppendUint64(b, hs.GetVote())
	return binary.LittleEndian.AppendUint64(b, hs.GetCommit())
}

func (m snapshotMark) append(b []byte) []byte {
	for _, v := range [...]uint64{m.index, m.term, m.file, m.length} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, m.sum)
}

func appendSnapshot(b []byte, m snapshotMark, keeps bool) []byte {
	b = append(b, itemSnapshot, 0)
	if keeps {
		b[len(b)-1] = 1
	}
	return m.append(b)
}

func appendEntries(b []byte, entries []*raftpb.Entry) []byte {
	b = append(b, itemEntries)
	b = binary.LittleEndian.AppendUint64(b, entries[0].GetIndex())
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, e.GetTerm())
		b = append(b, byte(e.GetType()))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.GetData())))
		b = append(b, e.GetData()...)
	}
	return b
}

func appendSeal(b []byte, next uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, itemSeal), next)
}

// reader reads fields from the beginning of b. If b is too short, it sets bad and returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) u8() byte {
	if p := r.bytes(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.bytes(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.bytes(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

func (r *reader) mark() (m snapshotMark) {
	return snapshotMark{index: r.u64(), term: r.u64(), file: r.u64(), length: r.u64(), sum: r.u32()}
}

// decodeItems decodes a payload. Its memory is proportional to the length of the payload, even for
// invalid payloads. The entries do not refer to the payload.
func decodeItems(payload []byte) (it items, err error) {
	r := reader{b: payload}
	for !r.bad && len(r.b) > 0 {
		kind := r.u8()
		switch kind {
		case itemEnd:
			for _, c := range r.b {
				r.bad = r.bad || c != 0
			}
			r.b = nil
		case itemIdentity:
			it.identity = &raftlog.Identity{Group: r.u64(), ID: r.u64()}
		case itemHardState:
			it.hard = &raftpb.HardState{Term: new(r.u64()), Vote: new(r.u64()), Commit: new(r.u64())}
		case itemSnapshot:
			keeps := r.u8()
			it.keeps = keeps == 1
			it.snapshot = new(r.mark())
			r.bad = r.bad || keeps > 1
		case itemEntries:
			r.bad = r.bad || it.entries != nil
			it.first, it.entries = r.entries()
		case itemMark:
		case itemSeal:
			it.seal = r.u64()
			r.bad = r.bad || it.seal == 0
		default:
			return items{}, fmt.Errorf("it holds an item of unknown kind %d, probably of a newer version "+
				"of mortise", kind)
		}
	}
	if r.bad {
		return items{}, fmt.Errorf("its content makes no sense although its checksum is right")
	}
	return it, nil
}

func (r *reader) entries() (first uint64, out []*raftpb.Entry) {
	first = r.u64()
	count := uint64(r.u32())
	if count == 0 || count > uint64(len(r.b))/entryHeadBytes || first == 0 || first+count < first {
		r.bad = true
		return 0, nil
	}
	out = make([]*raftpb.Entry, 0, count)
	for i := range count {
		e := &raftpb.Entry{Index: new(first + i), Term: new(r.u64())}
		kind := raftpb.EntryType(r.u8())
		if kind > raftpb.EntryConfChangeV2 {
			r.bad = true
		}
		if kind != raftpb.EntryNormal {
			e.Type = &kind
		}
		if data := r.bytes(uint64(r.u32())); len(data) > 0 {
			e.Data = append([]byte(nil), data...)
		}
		if r.bad {
			return 0, nil
		}
		out = append(out, e)
	}
	return first, out
}
