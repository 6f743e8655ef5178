//go:build linux

package proctest

import (
	"syscall"
	"time"
)

const (
	byLeave = "Leave"
	byKill  = "SIGKILL"
)

// These are the goals for the longest time without a grant of a free lock after an instance ends.
const (
	leaveGoal = 300 * time.Millisecond
	killGoal  = 2 * time.Second
)

// exit limits the time from the start of Leave to the end of the process. Kubernetes has the same
// limit by default.
const exit = 30 * time.Second

type departure struct {
	who  *instance
	how  string
	role string    // the role of the instance before its end: leads, votes or member
	at   time.Time // when the instance was killed, or asked to leave
	// End of the departure's period. A gap that begins in the period counts for the departure.
	until time.Time
	took  time.Duration
}

func (w *world) goal(how string) time.Duration {
	if how == byLeave && !w.fleet {
		return leaveGoal
	}
	return killGoal
}

// leave makes instances leave simultaneously, and waits for the end of their processes.
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

// close ends the periods of all departures so far. Later gaps do not count for these departures.
func (w *world) close() {
	for i := range w.departures {
		if w.departures[i].until.IsZero() {
			w.departures[i].until = time.Now()
		}
	}
}

func (w *world) depart(how string, in ...*instance) {
	w.t.Helper()
	if how == byLeave {
		w.leave(in...)
	} else {
		w.kill(in...)
	}
}
