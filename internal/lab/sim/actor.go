package sim

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// actor simulates a goroutine that owns a core. Functions that are passed to post wait in the inbox
// for the next turn.
type actor struct {
	p      *life
	inbox  []func(now clock.Time)
	roused bool
	ended  bool
	timer  int
	turn   func(now clock.Time) (next clock.Time) // returns zero if nothing is due
	busy   bool                                   // a turn is running
}

func (a *actor) post(f func(now clock.Time)) {
	if a.gone() {
		return
	}
	a.inbox = append(a.inbox, f)
	a.rouse()
}

func (a *actor) gone() bool { return a.ended || a.p.dead }

func (a *actor) rouse() {
	if a.roused || a.gone() {
		return
	}
	a.roused = true
	w := a.p.w
	slow := 40 * time.Microsecond
	if w.befalls(sluggish, w.odds.sluggish, a.p.m.name) {
		slow = 20 * time.Millisecond
	}
	w.after(w.between(0, slow), a.wake)
}

func (a *actor) wake() {
	w := a.p.w
	if a.gone() {
		return
	}
	if until := a.p.m.pausedUntil; w.now < until {
		w.after(until-w.now+w.between(0, time.Millisecond), a.wake)
		return
	}
	a.roused = false
	a.run()
}

// run executes one turn. Another actor of the same process may call run at a point where, in the
// product, one goroutine would wait for the other.
func (a *actor) run() {
	if a.gone() || a.busy {
		return
	}
	defer func() {
		if c := recover(); c != nil {
			a.p.w.broken("panic on %v: %v", a.p, c)
		}
	}()
	a.busy = true
	now := a.p.m.clock()
	inbox := a.inbox
	a.inbox = nil
	for _, f := range inbox {
		if a.gone() {
			break
		}
		f(now)
	}
	var next clock.Time
	if !a.gone() {
		next = a.turn(now)
	}
	a.busy = false
	a.timer++
	if a.gone() || next == 0 {
		return
	}
	set := a.timer
	wait := max(a.p.m.global(next)-a.p.w.now, 0)
	a.p.w.after(max(wait, 20*time.Microsecond), func() {
		if set == a.timer {
			a.rouse()
		}
	})
}
