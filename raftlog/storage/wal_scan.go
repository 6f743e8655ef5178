package storage

import (
	"fmt"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

type segment struct {
	header
	path   string
	end    int64  // offset of the next frame
	next   uint64 // number of the next frame
	tail   int64  // offset of the last frame. Zero means none
	last   []byte // the bytes of the last frame
	torn   bool   // the scan has stopped at a torn frame
	sealed uint64 // sequence that its seal names. Zero means no seal
}

type scanned struct {
	replay
	entries  []*raftpb.Entry // entries after the snapshot
	segments []segment       // in ascending order of sequence
	stale    []string        // names of unneeded files before a gap
}

func (w *wal) scan(sequences []uint64) (*scanned, error) {
	// A gap means that a crash has interrupted the removal of the segments before it. If they are
	// needed after all, complete returns an error.
	from := 0
	for i := 1; i < len(sequences); i++ {
		if sequences[i] != sequences[i-1]+1 {
			from = i
		}
	}
	s := &scanned{}
	for _, seq := range sequences[:from] {
		s.stale = append(s.stale, w.segmentName(seq))
	}
	for i, seq := range sequences[from:] {
		if err := s.read(w, seq, i == 0); err != nil {
			return nil, w.refuse(w.segmentName(seq), err)
		}
	}
	if err := s.complete(); err != nil {
		return nil, w.refuse(w.segmentName(sequences[len(sequences)-1]), err)
	}
	return s, nil
}

func (s *scanned) read(w *wal, sequence uint64, first bool) error {
	path := filepath.Join(w.dir, w.segmentName(sequence))
	b, err := readAll(w.fs, path)
	if err != nil {
		return fmt.Errorf("%w: %w", raftlog.ErrStorage, err)
	}
	h, err := decodeHeader(b)
	switch {
	case err != nil:
		return err
	case h.id != w.id || h.sequence != sequence:
		return fmt.Errorf("it is segment %d of replica %x of group %x, not segment %d of replica %x of group %x",
			h.sequence, h.id.ID, h.id.Group, sequence, w.id.ID, w.id.Group)
	case h.size != uint64(len(b)):
		return fmt.Errorf("it is %d bytes long, not %d", len(b), h.size)
	}
	if first {
		s.replay = resume(h.begins)
	} else if err := s.follows(h); err != nil {
		return err
	}
	seg := segment{header: h, path: path, end: headerBytes, next: h.first}
	for seg.sealed == 0 {
		payload, size, v := readFrame(b[seg.end:], seg.next, h.salt)
		if v == frameDamaged {
			return fmt.Errorf("frame %d at offset %d is damaged although it had been acknowledged", seg.next, seg.end)
		}
		if seg.torn = v == frameTorn; v != frameWhole {
			break
		}
		it, err := decodeItems(payload)
		if err == nil {
			err = s.add(it, w.id, sequence)
		}
		if err != nil {
			return fmt.Errorf("frame %d at offset %d: %w", seg.next, seg.end, err)
		}
		seg.tail, seg.last, seg.sealed = seg.end, b[seg.end:seg.end+int64(size)], it.seal
		seg.end += int64(size)
		seg.next++
	}
	// A copy, so that the whole file does not stay in memory.
	seg.last = slices.Clone(seg.last)
	s.segments = append(s.segments, seg)
	return nil
}

func (s *scanned) follows(h header) error {
	prev := &s.segments[len(s.segments)-1]
	switch {
	case prev.sealed == 0 && h.first != prev.next+1, prev.sealed != 0 && (prev.sealed != h.sequence ||
		h.first != prev.next):
		return fmt.Errorf("it begins with frame %d, but %s ends before frame %d: acknowledged frames are missing",
			h.first, prev.path, prev.next)
	case len(s.segments) > 1 && s.segments[len(s.segments)-2].sealed == 0:
		return fmt.Errorf("%s has lost its end although it had been acknowledged", s.segments[len(s.segments)-2].path)
	case !h.begins.equal(s.checkpoint):
		return fmt.Errorf("its header contradicts the contents of %s", prev.path)
	}
	return nil
}

func (s *scanned) add(it items, id raftlog.Identity, sequence uint64) error {
	if err := s.apply(it, id, sequence); err != nil {
		return err
	}
	if it.snapshot != nil {
		// Drop entries here and not at the end, so that a long log does not fill the memory.
		if !it.keeps {
			s.entries = nil
		}
		covered := s.upTo(it.snapshot.index)
		clear(s.entries[:covered])
		s.entries = s.entries[covered:]
	}
	if len(it.entries) == 0 {
		return nil
	}
	// Append in place: with a copy for each frame, reading a long log would take minutes.
	s.entries = append(s.entries[:s.upTo(it.first-1)], it.entries...)
	return nil
}

func (s *scanned) upTo(index uint64) int {
	if len(s.entries) == 0 || index < s.entries[0].GetIndex() {
		return 0
	}
	return int(min(index-s.entries[0].GetIndex()+1, uint64(len(s.entries))))
}

func (s *scanned) complete() error {
	n := len(s.segments)
	last := &s.segments[n-1]
	if last.sealed != 0 {
		return fmt.Errorf("the log continues in segment %d, which is missing", last.sealed)
	}
	if n > 1 && s.segments[n-2].sealed == 0 && last.tail != 0 {
		return fmt.Errorf("%s has lost its end although it had been acknowledged", s.segments[n-2].path)
	}
	if s.floor > s.base() {
		return fmt.Errorf("the entries from %d to %d are missing, with the segments that held them", s.base()+1,
			s.floor)
	}
	s.entries = s.entries[s.upTo(s.base()):]
	return nil
}
