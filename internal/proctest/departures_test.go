//go:build linux

package proctest

import (
	"syscall"
	"time"
)

// How an instance goes.
const (
	byLeave = "Leave"
	byKill  = "SIGKILL"
)

// The goals: the longest time in which a free lock cannot be had because an instance goes.
const (
	leaveGoal = 300 * time.Millisecond
	killGoal  = 2 * time.Second
)

// exit is how long an instance has to leave: what an orchestrator gives it by default.
const exit = 30 * time.Second

// departure is one instance that went.
type departure struct {
	who   *instance
	how   string
	role  string    // what it was before: leads, votes or a member
	at    time.Time // when it was told to, or killed
	until time.Time // to when what follows is put down to it: the next departure, or the end
	took  time.Duration
}

// goal is how long at most no lock could be had after such a departure.
func (w *world) goal(how string) time.Duration {
	if how == byLeave && !w.fleet {
		return leaveGoal
	}
	return killGoal
}

// leave has instances leave, all at once, and waits until they are gone.
func (w *world) leave(leavers ...*instance) {
	w.t.Helper()
	var records []departure
	for _, in := range leavers {
		records = append(records, w.goes(in, byLeave))
	}
	for i, in := range leavers {
		records[i].at = time.Now()
		in.signal(syscall.SIGTERM)
	}
	for i, in := range leavers {
		select {
		case <-in.ended:
		case <-time.After(time.Until(records[i].at.Add(exit))):
			w.t.Errorf("%s has not left within %v: %s", in.life, exit, in.describe())
			in.stopNow()
		}
		records[i].took = time.Since(records[i].at)
		in.mu.Lock()
		left := in.left
		in.mu.Unlock()
		if left == nil {
			w.t.Errorf("%s ended without having left", in.life)
		} else if left.Err != "" {
			w.t.Errorf("%s left with an error: %s", in.life, left.Err)
		}
	}
	w.departures = append(w.departures, records...)
}

// kill kills instances with SIGKILL, all at once.
func (w *world) kill(victims ...*instance) {
	w.t.Helper()
	var records []departure
	for _, in := range victims {
		records = append(records, w.goes(in, byKill))
	}
	for i, in := range victims {
		records[i].at = time.Now()
		in.signal(syscall.SIGKILL)
	}
	for i, in := range victims {
		<-in.ended
		records[i].took = time.Since(records[i].at)
	}
	w.departures = append(w.departures, records...)
}

// goes begins the record of a departure, and ends what is put down to the one before it.
func (w *world) goes(in *instance, how string) departure {
	role := "member"
	switch s := in.status(); {
	case s.Leading:
		role = "leads"
	case s.Votes:
		role = "votes"
	}
	w.close()
	return departure{who: in, how: how, role: role}
}

// close ends what is put down to the departures so far.
func (w *world) close() {
	for i := range w.departures {
		if w.departures[i].until.IsZero() {
			w.departures[i].until = time.Now()
		}
	}
}

// go lets instances go the one way or the other.
func (w *world) depart(how string, in ...*instance) {
	w.t.Helper()
	if how == byLeave {
		w.leave(in...)
	} else {
		w.kill(in...)
	}
}
