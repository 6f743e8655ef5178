package storage

import (
	"fmt"
	"sort"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// span is a run of entries of one term in one segment. It ends where the next span begins.
type span struct {
	first   uint64 // index of the first entry
	term    uint64
	segment uint64 // sequence of the segment
}

// replay is the result of applying a sequence of frames. Writing and reading share this code.
type replay struct {
	checkpoint

	// floor is the index up to which the entries are unknown, because the replay began at a
	// checkpoint after them. The snapshot must cover these entries.
	floor uint64
	spans []span
}

func resume(c checkpoint) replay { return replay{checkpoint: c, floor: c.lastIndex} }

func (f *replay) termAt(index uint64) (term uint64, ok bool) {
	if index <= f.floor || index > f.lastIndex {
		return 0, false
	}
	if i := f.spanOf(index); i >= 0 {
		return f.spans[i].term, true
	}
	return 0, false
}

// spanOf returns the position of the span that contains index, or -1 if all spans begin after it.
func (f *replay) spanOf(index uint64) int {
	return sort.Search(len(f.spans), func(i int) bool { return f.spans[i].first > index }) - 1
}

func (f *replay) base() uint64 {
	if f.snapshot == nil {
		return 0
	}
	return f.snapshot.index
}

// install applies a snapshot. It drops the entries that the snapshot covers, or all entries if
// keeps is not set.
func (f *replay) install(m snapshotMark, keeps bool) {
	f.snapshot = &m
	if !keeps || m.index >= f.lastIndex {
		f.floor, f.lastIndex, f.lastTerm, f.spans = m.index, m.index, m.term, nil
		return
	}
	if i := f.spanOf(m.index + 1); i > 0 {
		f.spans = append([]span(nil), f.spans[i:]...)
	}
	if len(f.spans) > 0 {
		f.spans[0].first = max(f.spans[0].first, m.index+1)
	}
	f.floor = max(f.floor, m.index)
}

func (f *replay) extend(first uint64, entries []*raftpb.Entry, segment uint64) error {
	if err := f.gap(first); err != nil {
		return err
	}
	f.floor = min(f.floor, first-1)
	for n := len(f.spans); n > 0 && f.spans[n-1].first >= first; n-- {
		f.spans = f.spans[:n-1]
	}
	for i, e := range entries {
		n := len(f.spans)
		if n == 0 || f.spans[n-1].term != e.GetTerm() || f.spans[n-1].segment != segment {
			f.spans = append(f.spans, span{first + uint64(i), e.GetTerm(), segment})
		}
	}
	f.lastIndex = first + uint64(len(entries)) - 1
	f.lastTerm = entries[len(entries)-1].GetTerm()
	return nil
}

// gap returns an error for entries that would leave a gap or that the snapshot covers.
func (f *replay) gap(first uint64) error {
	if first > f.lastIndex+1 || first <= f.base() {
		return fmt.Errorf("entry %d does not follow a log from %d to %d", first, f.base()+1, f.lastIndex)
	}
	return nil
}

func (f *replay) apply(it items, id raftlog.Identity, segment uint64) error {
	if it.identity != nil {
		if *it.identity != id || f.begun {
			return fmt.Errorf("it begins the log of replica %x of group %x within that of replica %x of group %x",
				it.identity.ID, it.identity.Group, id.ID, id.Group)
		}
		f.begun = true
	}
	if it.hard != nil {
		f.hard = it.hard
	}
	if it.snapshot != nil {
		f.install(*it.snapshot, it.keeps)
	}
	if len(it.entries) > 0 {
		return f.extend(it.first, it.entries, segment)
	}
	return nil
}

// oldest returns the first segment with an entry after the snapshot, or else the current segment.
func (f *replay) oldest(current uint64) uint64 {
	if f.lastIndex <= f.base() {
		return current
	}
	if i := f.spanOf(f.base() + 1); i >= 0 {
		return f.spans[i].segment
	}
	return 0 // the entry is in a segment that was not replayed
}
