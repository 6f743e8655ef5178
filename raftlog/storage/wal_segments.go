package storage

import (
	"fmt"
	"path/filepath"
)

// sealBytes is the space that a segment reserves for its seal.
const sealBytes = frameHeadBytes + 16

// reserve ensures that the current segment has space for a frame of n bytes and the seal, or begins
// a new segment.
func (w *wal) reserve(n int64) error {
	n += frameAlign
	if w.file != nil && w.at+n+sealBytes <= int64(w.header.size) {
		return nil
	}
	h := header{id: w.id, sequence: 1, size: uint64(max(w.segment, headerBytes+n+sealBytes)), first: w.next,
		begins: w.checkpoint}
	if w.file != nil {
		h.sequence, h.first = w.header.sequence+1, w.next+1
	}
	var salt [8]byte
	w.random(salt[:])
	for _, c := range salt {
		h.salt = h.salt<<8 | uint64(c)
	}
	path, err := w.create(&h)
	if err != nil {
		return err
	}
	if w.file != nil {
		if err := w.seal(h.sequence); err != nil {
			return err
		}
	} else {
		w.lowest = h.sequence
	}
	return w.use(&segment{header: h, path: path, end: headerBytes, next: h.first})
}

// create creates the file of a segment, from a spare if one is large enough.
func (w *wal) create(h *header) (path string, err error) {
	from := filepath.Join(w.dir, tempFile)
	var file File
	if n := len(w.spares); n > 0 && int64(h.size) <= w.segment {
		from = filepath.Join(w.dir, w.spares[n-1])
		w.spares = w.spares[:n-1]
		file, err = w.fs.Open(from)
	} else {
		file, err = w.fs.Create(from)
	}
	if err != nil {
		return "", err
	}
	if err = w.prepare(file, h); err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return "", err
	}
	path = filepath.Join(w.dir, w.segmentName(h.sequence))
	if err := w.fs.Rename(from, path); err != nil {
		return "", err
	}
	return path, w.fs.SyncDir(w.dir)
}

// prepare reserves the space and writes the header. A spare may be longer than h.size; prepare then
// sets h.size to its length.
func (w *wal) prepare(file File, h *header) error {
	size, err := file.Size()
	if err != nil {
		return err
	}
	if size < int64(h.size) {
		if err := file.Allocate(int64(h.size)); err != nil {
			return err
		}
	} else {
		h.size = uint64(size)
	}
	_, err = file.WriteAt(h.encode(), 0)
	return err
}

// use makes a segment the current one. It rewrites and syncs the last frame, because the disk may
// lack data that the kernel has returned.
func (w *wal) use(s *segment) error {
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			return err
		}
		w.file = nil
	}
	file, err := w.fs.Open(s.path)
	if err != nil {
		return err
	}
	w.file, w.header, w.at, w.next = file, s.header, s.end, s.next
	if s.tail == 0 {
		return nil
	}
	if _, err := file.WriteAt(s.last, s.tail); err != nil {
		return err
	}
	return file.Sync()
}

func (w *wal) seal(next uint64) error {
	frame := sealFrame(appendSeal(make([]byte, frameHeadBytes), next), w.next, w.header.salt)
	if _, err := w.file.WriteAt(frame, w.at); err != nil {
		return err
	}
	return w.file.Sync()
}

// release retires the files that a new snapshot makes unnecessary. It only renames such segments to
// spares, because removing large files would delay appends. If the new snapshot was prepared, the
// next Prepare removes the previous snapshot's file and surplus spares.
func (w *wal) release(old, now *snapshotMark) error {
	var segments, others []string
	oldest := w.oldest(w.header.sequence)
	for ; w.lowest < oldest; w.lowest++ {
		segments = append(segments, w.segmentName(w.lowest))
	}
	if old != nil {
		w.stale = append(w.stale, w.snapshotName(old.file))
	}
	p := w.prepared
	w.prepared = nil
	if p == nil || p.mark.file != now.file { // the new snapshot was not prepared
		if p != nil {
			w.stale = append(w.stale, w.snapshotName(p.mark.file))
		}
		others, w.stale = w.stale, nil
	}
	most := len(w.spares) + len(segments)
	if err := retire(w.fs, w.dir, &w.spares, most, segments, others); err != nil {
		return err
	}
	kept := min(len(w.spares), w.sparesFor(now))
	w.stale = append(w.stale, w.spares[kept:]...)
	w.spares = w.spares[:kept]
	return nil
}

// sparesFor returns the number of spares that the log needs until the next snapshot. That snapshot
// begins when the log has grown by one to one and a half times the size of the present snapshot.
func (w *wal) sparesFor(now *snapshotMark) int {
	if now == nil {
		return sparesKept
	}
	return sparesKept + int(now.length/2*3/uint64(w.segment))
}

func (w *wal) write(frame []byte) error {
	if err := checkFrame(len(frame)); err != nil {
		return err
	}
	if err := w.reserve(int64(len(frame))); err != nil {
		return err
	}
	frame = sealFrame(frame, w.next, w.header.salt)
	if _, err := w.file.WriteAt(frame, w.at); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	w.at += int64(len(frame))
	w.next++
	return nil
}

func checkFrame(size int) error {
	if size > maxFrameBytes {
		return fmt.Errorf("a batch of %d bytes exceeds the largest frame, %d", size, maxFrameBytes)
	}
	return nil
}

// markBytes is the distance between the two marks. Damage to one block of a disk must not affect
// both.
const markBytes = 4096

// mark writes two frames without content. The first is durable before the second is written.
func (w *wal) mark() error {
	frame := make([]byte, frameHeadBytes, frameHeadBytes+64+markBytes)
	frame = append(frame, itemMark)
	frame = append(frame, make([]byte, markBytes)...)
	if err := w.write(frame); err != nil {
		return err
	}
	return w.write(append(make([]byte, frameHeadBytes, frameHeadBytes+8), itemMark))
}
