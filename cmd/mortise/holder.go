package main

import (
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/purpose"
)

// This file says what has become of a holder. A name outlives a process, so the session decides
// whether the one that answers is the holder.

// fate is what is known of a holder.
type fate struct {
	text    string
	byForce bool // it may be necessary to end the hold by force
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
		return fate{text: fmt.Sprintf("its session has expired; the lock stays taken for %s more, because it was asked for with a delay", short(s.Left))}
	case i >= 0 && answers[i].Status.Lease == mortise.LeaseLost:
		return fate{text: fmt.Sprintf("%s answers, but has lost its lease, and knows it: the lock goes to the next %s", s.Holder, left)}
	case purpose.Lasting(s.Labels) && i >= 0:
		return fate{text: fmt.Sprintf("%s answers and renews its lease, and a long hold is what this lock is for (%s): nothing is to be done", s.Holder, s.Labels[purpose.Label])}
	case i >= 0:
		return fate{fmt.Sprintf("%s answers and renews its lease: its process lives, and the code in it has not unlocked", s.Holder), true}
	case slices.ContainsFunc(answers, func(r guest.Report) bool { return named(r) && len(r.Status.Sessions) > 0 }):
		return fate{text: fmt.Sprintf("an earlier life of %s holds it: the process of that name that answers now has another session. Nothing is to be stopped: the lock goes to the next %s, unless that life goes on", s.Holder, left)}
	case slices.ContainsFunc(answers, named):
		return fate{text: fmt.Sprintf("%s answers, and does not say that it holds this lock: it has just been started, or its build does not say. If it does not, the lock goes to the next %s", s.Holder, left)}
	case s.Left > 0:
		return fate{fmt.Sprintf("its session ends in %s unless %s renews it; the lock goes to the next then",
			short(s.Left), s.Holder), !purpose.Lasting(s.Labels)}
	}
	return fate{"nothing is known of its session yet", !purpose.Lasting(s.Labels)}
}
