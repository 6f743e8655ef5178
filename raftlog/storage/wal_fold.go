package storage

import (
	"fmt"
	"sort"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// span is a run of entries of one term whose newest version stands in one segment; it reaches to
// the next span.
type span struct {
	first   uint64 // index
	term    uint64
	segment uint64 // sequence
}

// fold is what a sequence of frames amounts to. Writing and reading go through the same code, so
// that both mean the same by it.
type fold struct {
	checkpoint

	// floor is the index up to which this fold does not know the entries, since it began at a
	// checkpoint behind them. They are no loss if the snapshot covers them.
	floor uint64
	spans []span
}

// resume begins a fold at a checkpoint.
func resume(c checkpoint) fold { return fold{checkpoint: c, floor: c.lastIndex} }

// termAt returns the term of an entry of the log that the fold knows.
func (f *fold) termAt(index uint64) (term uint64, ok bool) {
	if index <= f.floor || index > f.lastIndex {
		return 0, false
	}
	if i := f.spanOf(index); i >= 0 {
		return f.spans[i].term, true
	}
	return 0, false
}

// spanOf returns the place of the span that an index stands in, -1 if before all.
func (f *fold) spanOf(index uint64) int {
	return sort.Search(len(f.spans), func(i int) bool { return f.spans[i].first > index }) - 1
}

// base returns the index of the snapshot, 0 without one.
func (f *fold) base() uint64 {
	if f.snapshot == nil {
		return 0
	}
	return f.snapshot.index
}

// install takes a snapshot. If the entries behind it stay, those up to it are forgotten, otherwise
// all.
func (f *fold) install(m snapshotMark, keeps bool) {
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

// extend takes entries, the first of which replaces what stands there and all behind it.
func (f *fold) extend(first uint64, entries []*raftpb.Entry, segment uint64) error {
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

// gap refuses entries that would leave a hole.
func (f *fold) gap(first uint64) error {
	if first > f.lastIndex+1 || first <= f.base() {
		return fmt.Errorf("entry %d does not follow a log from %d to %d", first, f.base()+1, f.lastIndex)
	}
	return nil
}

// apply takes the items of one frame.
func (f *fold) apply(it items, id raftlog.Identity, segment uint64) error {
	if it.identity != nil {
		if *it.identity != id || f.begun {
			return fmt.Errorf("it begins the log of replica %x of group %x in that of replica %x of group %x",
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

// oldest returns the first segment that an entry behind the snapshot stands in; without entries
// that is the current one.
func (f *fold) oldest(current uint64) uint64 {
	if f.lastIndex <= f.base() {
		return current
	}
	if i := f.spanOf(f.base() + 1); i >= 0 {
		return f.spans[i].segment
	}
	return 0 // in a segment from before this fold
}
