package client

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	waitFirst   = 50 * time.Millisecond
	waitLongest = 200 * time.Millisecond
	settled     = 200 * time.Millisecond // an attachment that lasts this long resets the backoff
	movesAtOnce = 3

	// A client that looks for an answer later than starvedFor is starved itself. It allows
	// excuseTimes the delay more, since an answer needs several goroutines that wait as long. It does
	// so at most maxExcuses times for one answer. After a pause longer than pausedFor it asks anew,
	// since a renewal counts from its sending.
	starvedFor  = 20 * time.Millisecond
	pausedFor   = time.Second
	excuseTimes = 4
	maxExcuses  = 3
)

// finder knows which target the client asks, when it asks another one, and which leaders it has
// heard of.
type finder struct {
	bound         bool
	targets       []nodeid.Endpoint
	cursor        int
	target        nodeid.Endpoint
	pipeline      bool // target was named as the leader, so requests follow Attach immediately
	retryAt       clock.Time
	hint          nodeid.Endpoint // the target to ask at retryAt; zero means the next target in targets
	answerBy      clock.Time
	answerTimeout time.Duration
	excusedUntil  clock.Time // an answer is not overdue before; zero means no excuse
	excuses       int        // how often the present answer was excused
	wait          time.Duration
	moves         int       // how often the target has changed without a wait
	cut           nodeid.ID // the last target whose stream ended; zero once one has attached the session
	cuts          int       // how often it has ended in a row, while the term was cutTerm
	cutTerm       uint64
	since         clock.Time // when this attachment was confirmed
	orphaned      clock.Time // when the client lost its leader; zero while attached
	silent        clock.Time // since when that leader had not answered; zero while attached
	term          uint64     // the highest term that a voter has reported
	provenTerm    uint64     // the term of the leader that last opened or attached this session
}

func (f *finder) rebind(targets []nodeid.Endpoint, bound bool, answerTimeout time.Duration) {
	f.setTargets(targets)
	f.bound, f.answerTimeout = bound, answerTimeout
	f.term, f.provenTerm, f.moves, f.wait = 0, 0, 0, waitFirst
}

func (f *finder) setTargets(targets []nodeid.Endpoint) { f.targets, f.cursor = targets, 0 }

// isTarget reports whether the list of targets has the peer.
func (f *finder) isTarget(peer nodeid.ID) bool {
	return slices.ContainsFunc(f.targets, func(t nodeid.Endpoint) bool { return t.ID == peer })
}

func (f *finder) find(peer nodeid.ID) nodeid.Endpoint {
	if f.target.ID == peer {
		return f.target
	}
	for _, t := range f.targets {
		if t.ID == peer {
			return t
		}
	}
	return nodeid.Endpoint{ID: peer}
}

func (f *finder) nextTarget() nodeid.Endpoint {
	to := f.targets[f.cursor%len(f.targets)]
	f.cursor++
	if to.ID == f.target.ID && len(f.targets) > 1 {
		to = f.targets[f.cursor%len(f.targets)]
		f.cursor++
	}
	return to
}

// seek makes the client ask a target at a time; see Core.findLeader.
func (f *finder) seek(at clock.Time, aim nodeid.Endpoint) { f.retryAt, f.hint = at, aim }

// rest makes the client ask no target.
func (f *finder) rest() { f.retryAt = 0 }

// asks notes the target that is asked now, and the end of the time for its answer.
func (f *finder) asks(to nodeid.Endpoint, believed bool, answerBy clock.Time) {
	f.target, f.pipeline, f.answerBy = to, believed, answerBy
	f.answered()
	f.seek(0, nodeid.Endpoint{})
}

// answered ends the excuses for the target's last answer.
func (f *finder) answered() { f.excusedUntil, f.excuses = 0, 0 }

// excuse is called at a time when an answer is overdue since the time by. It reports whether the
// client itself is late and therefore allows more time, at most until the time latest.
func (f *finder) excuse(now, by, latest clock.Time) bool {
	late := now.Sub(by)
	if late < starvedFor || late > pausedFor || f.excuses == maxExcuses {
		return false
	}
	f.excuses++
	f.excusedUntil = min(now.Add(excuseTimes*late), latest)
	return true
}

// moved counts a change of the target. It returns false if the next change needs a wait.
func (f *finder) moved() bool {
	f.moves++
	return f.moves <= movesAtOnce+len(f.targets)
}

// nextWait returns the wait before the next target.
func (f *finder) nextWait() time.Duration {
	wait := f.wait
	f.wait, f.moves = min(2*wait, waitLongest), 0
	return wait
}

// left notes the end of an attachment to a leader that has not answered since the time silent.
func (f *finder) left(now, silent clock.Time) { f.orphaned, f.silent = now, silent }

// resetBackoff forgets the changes of the target if the attachment has lasted.
func (f *finder) resetBackoff(now clock.Time) {
	if now.Sub(f.since) >= settled {
		f.wait, f.moves = waitFirst, 0
	}
}

// allow sets the time in which the leader must answer.
func (f *finder) allow(answerTimeout time.Duration) { f.answerTimeout = answerTimeout }

// cutOff notes that the stream of the target has ended.
func (f *finder) cutOff() {
	if f.cut != f.target.ID || f.cutTerm != f.term {
		f.cut, f.cuts, f.cutTerm = f.target.ID, 0, f.term
	}
	f.cuts++
}

// isCutOff reports whether a voter that names a leader in a term says nothing new: the stream of
// that leader has ended, and so has the next one.
func (f *finder) isCutOff(leader nodeid.ID, term uint64) bool {
	return f.cuts > 1 && leader == f.cut && term == f.cutTerm
}

func (f *finder) heard(term uint64) { f.term = max(f.term, term) }

// opened notes that the leader of a term has opened the session.
func (f *finder) opened(term uint64) { f.provenTerm = term }

// attached notes that the leader of a term has attached the session.
func (f *finder) attached(now clock.Time, term uint64) {
	f.since, f.provenTerm, f.orphaned, f.silent = now, term, 0, 0
	f.cut, f.cuts = nodeid.ID{}, 0
}
