package main

import (
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/shown"
)

// This file determines whether a holder still runs. A restarted process has the name of its
// predecessor, so only the session shows whether the instance that answers is the holder.

type fate struct {
	text    string
	byForce bool // whether ending the hold by force may be necessary
}

func holderFate(s mortise.Standing, f facts) fate {
	named := func(r guest.Report) bool { return r.Status.Name == s.Holder }
	alive := func(r guest.Report) bool { return slices.Contains(r.Status.Sessions, s.Session) }
	left := "when the session ends"
	if s.Left > 0 {
		left = "in " + short(s.Left) + ", when the session ends"
	}
	answers := f.answers()
	i := slices.IndexFunc(answers, alive)
	switch {
	case s.Expired:
		return fate{text: fmt.Sprintf("its session has expired; the lock stays taken for %s more, "+
			"because the request has a lock delay", short(s.Left))}
	case i >= 0 && answers[i].Status.Lease == mortise.LeaseLost:
		return fate{text: fmt.Sprintf("%s answers and reports that it has lost its lease: "+
			"the lock goes to the next waiter %s", s.Holder, left)}
	case shown.Lasting(s.Labels) && i >= 0:
		return fate{text: fmt.Sprintf("%s answers and renews its lease, and this lock is held long by design (%s): "+
			"there is nothing to do", s.Holder, s.Labels[shown.PurposeLabel])}
	case i >= 0 && s.Kept:
		return fate{fmt.Sprintf("%s answers and renews its lease: its process is alive, "+
			"and gives the lock back when no code there holds it", s.Holder), true}
	case i >= 0:
		return fate{fmt.Sprintf("%s answers and renews its lease: its process is alive, "+
			"and its code has not unlocked", s.Holder), true}
	case slices.ContainsFunc(answers, func(r guest.Report) bool { return named(r) && len(r.Status.Sessions) > 0 }):
		return fate{text: fmt.Sprintf("an earlier incarnation of %s holds it: the process of that name that answers now has "+
			"another session. Stop nothing: the lock goes to the next waiter %s, unless the earlier process still runs",
			s.Holder, left)}
	case slices.ContainsFunc(answers, named):
		return fate{text: fmt.Sprintf("%s answers, but does not report its sessions: it has just been started, or its "+
			"version "+
			"does not report them. If it does not hold the lock, the lock goes to the next waiter %s", s.Holder, left)}
	case f.refusing(s.Holder) != "":
		return fate{text: fmt.Sprintf("the process of %s does not run: %s refuses the connection. Stop nothing: "+
			"the lock goes to the next waiter %s", s.Holder, f.refusing(s.Holder), left)}
	case s.Left > 0:
		return fate{fmt.Sprintf("its session ends in %s unless %s renews it; the lock then goes to the next waiter",
			short(s.Left), s.Holder), !shown.Lasting(s.Labels)}
	}
	return fate{"nothing is known of its session yet", !shown.Lasting(s.Labels)}
}
