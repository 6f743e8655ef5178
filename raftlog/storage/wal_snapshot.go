package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/raftlog"
)

// A snapshot is a separate file. It takes effect when a frame names it.
//
//	magic [8]byte; version, length of the metadata uint32;
//	group, id, file, length of the data uint64; metadata (protobuf); data
//
// That frame contains the length and the CRC32C of the file. The file is durable before the frame
// is written, and the previous file is removed after the frame is durable.
const (
	snapshotMagic     = "mortiseS"
	snapshotHeadBytes = 8 + 4 + 4 + 4*8
)

// snapshotPieceBytes is the number of bytes of a snapshot between two syncs. A larger piece would
// delay the log, because a file system writes dirty memory to the disk before it syncs the log.
const snapshotPieceBytes = 1 << 20

// writeSnapshot makes a snapshot durable. It fails when ctx ends. It uses only constant fields of
// w, so it may run concurrently with a Save.
func (w *wal) writeSnapshot(ctx context.Context, file uint64, s *raftpb.Snapshot) (snapshotMark, error) {
	meta, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.GetMetadata())
	if err != nil {
		return snapshotMark{}, err
	}
	le := binary.LittleEndian
	head := append(make([]byte, 0, snapshotHeadBytes+len(meta)), snapshotMagic...)
	head = le.AppendUint32(head, formatVersion)
	head = le.AppendUint32(head, uint32(len(meta)))
	for _, v := range [...]uint64{w.id.Group, w.id.ID, file, uint64(len(s.GetData()))} {
		head = le.AppendUint64(head, v)
	}
	head = append(head, meta...)
	m := snapshotMark{index: s.GetMetadata().GetIndex(), term: s.GetMetadata().GetTerm(), file: file,
		length: uint64(len(head) + len(s.GetData()))}
	f, err := w.fs.Create(filepath.Join(w.dir, w.snapshotName(file)))
	if err != nil {
		return snapshotMark{}, err
	}
	m.sum, err = writePieces(ctx, f, head, s.GetData())
	if err = errors.Join(err, f.Close()); err != nil {
		return snapshotMark{}, err
	}
	return m, w.fs.SyncDir(w.dir)
}

func writePieces(ctx context.Context, f File, parts ...[]byte) (sum uint32, err error) {
	at, since := int64(0), 0
	for _, p := range parts {
		for len(p) > 0 {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			n := min(len(p), snapshotPieceBytes-since)
			if _, err := f.WriteAt(p[:n], at); err != nil {
				return 0, err
			}
			sum = crc32.Update(sum, castagnoli(), p[:n])
			p, at, since = p[n:], at+int64(n), since+n
			if since < snapshotPieceBytes {
				continue
			}
			since = 0
			if err := f.Sync(); err != nil {
				return 0, err
			}
		}
	}
	if since == 0 {
		return sum, nil
	}
	return sum, f.Sync()
}

func (w *wal) readSnapshot(m snapshotMark) (*raftpb.Snapshot, error) {
	name := w.snapshotName(m.file)
	b, err := readAll(w.fs, filepath.Join(w.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, w.refuse(name, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	s, err := decodeSnapshot(b, m, w.id)
	if err != nil {
		return nil, w.refuse(name, err)
	}
	return s, nil
}

func decodeSnapshot(b []byte, m snapshotMark, id raftlog.Identity) (*raftpb.Snapshot, error) {
	if uint64(len(b)) != m.length {
		return nil, fmt.Errorf("it is %d bytes long, not %d", len(b), m.length)
	}
	if checksum(b) != m.sum {
		return nil, fmt.Errorf("it does not match its checksum")
	}
	r := reader{b: b}
	magic, version, metaLen := string(r.bytes(8)), r.u32(), r.u32()
	owner, file, dataLen := raftlog.Identity{Group: r.u64(), ID: r.u64()}, r.u64(), r.u64()
	if magic != snapshotMagic || version != formatVersion || owner != id || file != m.file {
		return nil, fmt.Errorf("it is not a snapshot of this log, or it is from another version of mortise")
	}
	meta, data := &raftpb.SnapshotMetadata{}, []byte(nil)
	if err := proto.Unmarshal(r.bytes(uint64(metaLen)), meta); err != nil {
		return nil, err
	}
	if data = r.bytes(dataLen); r.bad || len(r.b) > 0 || meta.GetIndex() != m.index || meta.GetTerm() != m.term {
		return nil, fmt.Errorf("its content makes no sense although its checksum is right")
	}
	if len(data) == 0 {
		data = nil
	}
	return &raftpb.Snapshot{Data: data, Metadata: meta}, nil
}
