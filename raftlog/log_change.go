package raftlog

// change is a Change and the term for which it was decided.
type change struct {
	term uint64
	Change
}

// Change proposes a change of the configuration, and returns false if the log has ended. It is proposed only while this replica leads
// in that term, Applier.Leads was called, nothing is pending (see Survey), and it makes sense for the present configuration; otherwise it
// is forgotten, as is one that another follows at once. Applier.Configured tells what has become of it. The slices must not be changed
// afterwards.
func (l *Log) Change(term uint64, c Change) bool {
	return l.put(func(in *inbox) { in.change = &change{term, c} })
}

// Survey returns how this replica sees its group, as of the last tick, change of role or configuration. The slices are shared and must not
// be changed.
func (l *Log) Survey() Survey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.survey
}

// look takes a survey, if there is a new one.
func (l *Log) look() {
	s, anew := l.core.Surveyed()
	if !anew {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.survey = s
}
