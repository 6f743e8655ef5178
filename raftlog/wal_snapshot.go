package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// A snapshot is a file of its own, named by the frame that makes it hold:
//
//	magic [8]byte; version uint32; length of the metadata uint32; group, id, file, length of the data uint64; metadata (protobuf); data
//
// The frame holds its length and the CRC32C of all of it. It is complete and durable under its name before the frame is written, and the
// file of the snapshot before goes after the frame is durable, so that at any moment the log names one that is there.
const (
	snapshotMagic     = "mortiseS"
	snapshotHeadBytes = 8 + 4 + 4 + 4*8
)

// writeSnapshot makes a snapshot durable beside the log, where it means nothing until a frame names it.
func (w *wal) writeSnapshot(s *raftpb.Snapshot) (snapshotMark, error) {
	meta, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.GetMetadata())
	if err != nil {
		return snapshotMark{}, err
	}
	le := binary.LittleEndian
	head := append(make([]byte, 0, snapshotHeadBytes+len(meta)), snapshotMagic...)
	head = le.AppendUint32(head, formatVersion)
	head = le.AppendUint32(head, uint32(len(meta)))
	for _, v := range [...]uint64{w.id.Group, w.id.ID, w.next, uint64(len(s.GetData()))} {
		head = le.AppendUint64(head, v)
	}
	head = append(head, meta...)
	m := snapshotMark{
		index: s.GetMetadata().GetIndex(), term: s.GetMetadata().GetTerm(), file: w.next,
		length: uint64(len(head) + len(s.GetData())), sum: checksumOf(head, s.GetData()),
	}
	return m, replaceFile(w.fs, w.dir, w.snapshotName(m.file), head, s.GetData())
}

// readSnapshot reads the snapshot that the log names.
func (w *wal) readSnapshot(m snapshotMark) (*raftpb.Snapshot, error) {
	name := w.snapshotName(m.file)
	b, err := readAll(w.fs, filepath.Join(w.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, w.refuse(name, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	s, err := decodeSnapshot(b, m, w.id)
	if err != nil {
		return nil, w.refuse(name, err)
	}
	return s, nil
}

func decodeSnapshot(b []byte, m snapshotMark, id Identity) (*raftpb.Snapshot, error) {
	if uint64(len(b)) != m.length {
		return nil, fmt.Errorf("it is %d bytes long and must be %d", len(b), m.length)
	}
	if checksum(b) != m.sum {
		return nil, fmt.Errorf("it does not match its checksum")
	}
	r := reader{b: b}
	magic, version, metaLen := string(r.take(8)), r.u32(), r.u32()
	owner, file, dataLen := Identity{r.u64(), r.u64()}, r.u64(), r.u64()
	if magic != snapshotMagic || version != formatVersion || owner != id || file != m.file {
		return nil, fmt.Errorf("it is no snapshot of this log that this version of mortise knows")
	}
	meta, data := &raftpb.SnapshotMetadata{}, []byte(nil)
	if err := proto.Unmarshal(r.take(uint64(metaLen)), meta); err != nil {
		return nil, err
	}
	if data = r.take(dataLen); r.bad || len(r.b) > 0 || meta.GetIndex() != m.index || meta.GetTerm() != m.term {
		return nil, fmt.Errorf("its content makes no sense although its checksum is right")
	}
	if len(data) == 0 {
		data = nil
	}
	return &raftpb.Snapshot{Data: data, Metadata: meta}, nil
}
