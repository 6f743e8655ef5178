package tick

import (
	"errors"
	"fmt"
	"time"
)

const (
	maxMissed = 1000
	minGap    = 10 * time.Millisecond
)

var errNoMore = errors.New("tick: the schedule has ended")

type plan struct {
	schedule   Schedule
	late, skew time.Duration

	settled time.Time // all ticks up to this time are handled; zero before the first call
	missed  int       // number of ticks that this instance has skipped in a row
}

type window struct {
	at     time.Time // the nominal time
	over   time.Time // the tick may begin only before this time
	free   time.Time // from this time on, no instance may begin the tick
	missed int
}

// next returns the tick to begin now or to wait for. It skips and counts the ticks that may no
// longer begin.
func (p *plan) next(now time.Time) (window, error) {
	anew := p.settled.IsZero() || p.settled.Sub(now) > p.skew
	if anew { // ticks before the first call do not count
		p.settled, p.missed = now.Add(-p.late), 0
		if err := p.leap(now); err != nil {
			return window{}, err
		}
	}
	for passed := 1; ; passed++ {
		w, err := p.window(p.settled)
		if err != nil {
			return window{}, err
		}
		if now.Before(w.over) {
			w.missed = p.missed
			return w, nil
		}
		if p.pass(w.at); anew {
			p.missed = 0
		}
		if passed == maxMissed {
			if err := p.leap(now); err != nil {
				return window{}, err
			}
		}
	}
}

// leap skips all ticks before the last one that is not after now. Only this one may still begin,
// because a tick is over before the following one. The search halves the time that it searches, so
// a long Late or a long pause costs as little as a short one.
func (p *plan) leap(now time.Time) error {
	late := func(t time.Time) (bool, error) { // whether the tick after t is not after now
		at, err := p.after(t)
		if err == errNoMore {
			return false, nil
		}
		return err == nil && !at.After(now), err
	}
	if is, err := late(p.settled); !is {
		return err
	}
	low, high := p.settled, now
	for high.Sub(low) > 1 {
		middle := low.Add(high.Sub(low) / 2)
		is, err := late(middle)
		if err != nil {
			return err
		}
		if is {
			low = middle
		} else {
			high = middle
		}
	}
	p.settled = low
	return nil
}

func (p *plan) attended(at time.Time) { p.settled, p.missed = at, 0 }

func (p *plan) pass(at time.Time) { p.settled, p.missed = at, min(p.missed+1, maxMissed) }

func (p *plan) window(t time.Time) (window, error) {
	at, err := p.after(t)
	if err != nil {
		return window{}, err
	}
	if again := p.schedule.Next(at.Add(-1)); !again.Equal(at) {
		return window{}, fmt.Errorf("tick: the schedule depends on when it is asked: after %v its next tick is %v, but "+
			"when asked 1 ns before that tick it names %v; instances would not agree on the ticks", t, at, again)
	}
	late, skew := p.late, p.skew
	switch following, err := p.after(at); {
	case err == nil:
		gap := following.Sub(at)
		if gap < minGap {
			return window{}, fmt.Errorf("tick: the ticks %v and %v are %v apart: at least %v is needed", at,
				following, gap, minGap)
		}
		skew = min(skew, gap/2)
		late = min(late, gap-skew)
	case err != errNoMore:
		return window{}, err
	}
	return window{at: at, over: at.Add(late), free: at.Add(late).Add(skew)}, nil
}

func (p *plan) after(t time.Time) (time.Time, error) {
	at := p.schedule.Next(t)
	switch {
	case at.IsZero():
		return at, errNoMore
	case !at.After(t):
		return at, fmt.Errorf("tick: the schedule does not advance: its next tick after %v is %v", t, at)
	}
	return at, nil
}
