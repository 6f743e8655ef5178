package storage

import (
	"fmt"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// segment is one segment file as it was read.
type segment struct {
	header
	path   string
	end    int64  // where the next frame goes
	next   uint64 // its number
	tail   int64  // where the last frame begins; 0: there is none
	last   []byte // the bytes of the last frame
	torn   bool   // a part of a frame stands at end
	sealed uint64 // the sequence that its seal names, 0: none
}

// scanned is a log as it was read.
type scanned struct {
	fold
	entries  []*raftpb.Entry // behind the snapshot
	segments []segment       // in order
	stale    []string        // names of files from before a gap that nothing needs
}

// scan reads the segments with these sequences, which ascend, and changes nothing.
func (w *wal) scan(sequences []uint64) (*scanned, error) {
	// What stands before a gap is left from the removal of segments that were no longer needed, cut
	// short by a crash. If it was needed after all, the log that follows does not reach down to its
	// snapshot, and is refused.
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

// read reads one segment and goes on with the fold.
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
		return fmt.Errorf("it is %d bytes long and must be %d", len(b), h.size)
	}
	if first {
		s.fold = resume(h.begins)
	} else if err := s.follows(h); err != nil {
		return err
	}
	seg := segment{header: h, path: path, end: headerBytes, next: h.first}
	for seg.sealed == 0 {
		payload, size, v := readFrame(b[seg.end:], seg.next, h.salt)
		if v == frameDamaged {
			return fmt.Errorf("frame %d at offset %d is damaged, and it had been acknowledged", seg.next, seg.end)
		}
		if seg.torn = v == frameTorn; v != frameWhole {
			break
		}
		it, err := decodeItems(payload)
		if err == nil {
			err = s.take(it, w.id, sequence)
		}
		if err != nil {
			return fmt.Errorf("frame %d at offset %d: %w", seg.next, seg.end, err)
		}
		seg.tail, seg.last, seg.sealed = seg.end, b[seg.end:seg.end+int64(size)], it.seal
		seg.end += int64(size)
		seg.next++
	}
	// Without this the whole file would stay in memory.
	seg.last = slices.Clone(seg.last)
	s.segments = append(s.segments, seg)
	return nil
}

// follows checks a segment that is not the first against what came before it.
func (s *scanned) follows(h header) error {
	prev := &s.segments[len(s.segments)-1]
	switch {
	case prev.sealed == 0 && h.first != prev.next+1, prev.sealed != 0 && (prev.sealed != h.sequence ||
		h.first != prev.next):
		return fmt.Errorf("it begins with frame %d, but %s ends before frame %d: what stood there had been acknowledged", h.first, prev.path, prev.next)
	case len(s.segments) > 1 && s.segments[len(s.segments)-2].sealed == 0:
		return fmt.Errorf("%s has lost its end, and it had been acknowledged", s.segments[len(s.segments)-2].path)
	case !h.begins.equal(s.checkpoint):
		return fmt.Errorf("its header does not say what %s comes to", prev.path)
	}
	return nil
}

// take goes on with the fold by one frame.
func (s *scanned) take(it items, id raftlog.Identity, sequence uint64) error {
	if err := s.apply(it, id, sequence); err != nil {
		return err
	}
	if it.snapshot != nil {
		// Entries before the snapshot are dropped here and not when the log is complete, so that a
		// long log does not pile them up.
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
	// in place: a copy for each frame would make a long log take minutes
	s.entries = append(s.entries[:s.upTo(it.first-1)], it.entries...)
	return nil
}

// upTo counts the entries up to an index.
func (s *scanned) upTo(index uint64) int {
	if len(s.entries) == 0 || index < s.entries[0].GetIndex() {
		return 0
	}
	return int(min(index-s.entries[0].GetIndex()+1, uint64(len(s.entries))))
}

// complete checks what only the end of the log can tell.
func (s *scanned) complete() error {
	n := len(s.segments)
	last := &s.segments[n-1]
	if last.sealed != 0 {
		return fmt.Errorf("the log goes on in segment %d, which is missing", last.sealed)
	}
	if n > 1 && s.segments[n-2].sealed == 0 && last.tail != 0 {
		return fmt.Errorf("%s has lost its end, and it had been acknowledged", s.segments[n-2].path)
	}
	// What the first segments held up to the snapshot is not needed; anything above it is.
	if s.floor > s.base() {
		return fmt.Errorf("the entries from %d to %d are missing, with the segments that held them", s.base()+1,
			s.floor)
	}
	s.entries = s.entries[s.upTo(s.base()):]
	return nil
}
