package storage

import "github.com/mortise-lock/mortise/raftlog"

// open reads the log in the directory, if there is one, and cuts a torn frame off.
func (w *wal) open(l listing) error {
	w.next = 1
	for _, file := range l.snapshots[w.id.ID] {
		w.files = max(w.files, file)
	}
	sequences := l.segments[w.id.ID]
	if len(sequences) == 0 {
		return nil
	}
	s, err := w.scan(sequences)
	if err != nil {
		return err
	}
	if _, err := w.state(s); err != nil { // detect an unreadable snapshot now
		return err
	}
	if err := w.resume(s); err != nil {
		return w.fail("opening", err)
	}
	if err := w.tidy(l, s); err != nil {
		return w.fail("opening", err)
	}
	return nil
}

func (w *wal) resume(s *scanned) error {
	w.replay = s.replay
	last := &s.segments[len(s.segments)-1]
	if last.torn {
		w.logger.Warn("cut a frame that a crash had left incomplete; it was never acknowledged", "file",
			last.path, "offset", last.end)
	}
	if n := len(s.segments); n > 1 && s.segments[n-2].sealed == 0 {
		// The crash happened after the header of the new segment was written and before the seal of
		// the old segment was written.
		if err := w.use(&s.segments[n-2]); err != nil {
			return err
		}
		if err := w.seal(last.sequence); err != nil {
			return err
		}
	}
	if err := w.use(last); err != nil {
		return err
	}
	return w.mark()
}

// tidy retires unneeded segments and snapshots that a crash has left.
func (w *wal) tidy(l listing, s *scanned) error {
	segments := s.stale
	w.lowest = w.oldest(w.header.sequence)
	for i := range s.segments {
		if s.segments[i].sequence < w.lowest {
			segments = append(segments, w.segmentName(s.segments[i].sequence))
		}
	}
	var others []string
	for _, file := range l.snapshots[w.id.ID] {
		if w.snapshot == nil || file != w.snapshot.file {
			others = append(others, w.snapshotName(file))
		}
	}
	return retire(w.fs, w.dir, &w.spares, w.sparesFor(w.snapshot), segments, others)
}

func (w *wal) Load() (raftlog.State, error) {
	w.busy.lock()
	defer w.busy.unlock()
	if err := w.usable(); err != nil {
		return raftlog.State{}, err
	}
	if w.file == nil {
		return raftlog.State{}, nil
	}
	l, err := list(w.fs, w.dir)
	if err != nil {
		return raftlog.State{}, w.fail("reading the directory", err)
	}
	s, err := w.scan(l.segments[w.id.ID])
	if err != nil {
		return raftlog.State{}, err
	}
	return w.state(s)
}

func (w *wal) state(s *scanned) (st raftlog.State, err error) {
	if !s.begun {
		return raftlog.State{}, nil
	}
	st = raftlog.State{Identity: w.id, HardState: s.hard, Entries: s.entries}
	if s.snapshot != nil {
		st.Snapshot, err = w.readSnapshot(*s.snapshot)
	}
	return st, err
}
