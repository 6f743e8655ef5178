package client

import (
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Check verifies the invariants of the core, for tests.
func (c *Core) Check() error {
	waiting, held, freeing, open, keyBytes, tries := 0, 0, 0, 0, 0, 0
	count := func(e *entry) error {
		if r := e.req; r != nil {
			if r.entry != e {
				return fmt.Errorf("entry %d: its request has another entry", e.number)
			}
			switch r.stage {
			case stageWaiting:
				waiting++
				keyBytes += r.bytes()
				if r.Try {
					tries++
				}
			case stageHeld:
				held++
			case stageDoubt:
			case stageReleasing:
				if !e.freeing {
					return fmt.Errorf("entry %d is being released, but is not marked as freeing", e.number)
				}
			default:
				return fmt.Errorf("entry %d belongs to a request at stage %d", e.number, r.stage)
			}
		} else if !e.freeing {
			return fmt.Errorf("entry %d has no request and is not freeing", e.number)
		}
		if e.freeing {
			freeing++
		}
		open += int(e.open)
		return nil
	}
	last := uint64(0)
	for e := c.unsent.head; e != nil; e = e.next {
		if err := count(e); err != nil {
			return err
		}
		if e.number != 0 || e.req.order() <= last || e.freeing {
			return fmt.Errorf("unsent entry %d with order %d after %d", e.number, e.req.order(), last)
		}
		last = e.req.order()
	}
	last, size := 0, 0
	for e := c.sent.head; e != nil; e = e.next {
		if err := count(e); err != nil {
			return err
		}
		if uint64(e.number) <= last || c.sentAs(e.number) != e || e.number >= c.number {
			return fmt.Errorf("sent entry %d after %d, next %d", e.number, last, c.number)
		}
		last = uint64(e.number)
		size++
		if c.phase == Attached && e.freeing && !e.due && e.open == 0 && e.seldom().left != c.epoch {
			return fmt.Errorf("entry %d is not wanted any more, and the group was not told", e.number)
		}
	}
	if size != c.sent.size || size != c.byNumber.Len() {
		return fmt.Errorf("the list of sent entries has %d, but its size says %d and the index by number has %d",
			size, c.sent.size, c.byNumber.Len())
	}
	n := &c.counts
	if waiting != n.waiting || held != n.held || freeing != n.freeing || open != n.open || keyBytes != n.keyBytes ||
		tries != n.tries {
		return fmt.Errorf("counted and recorded: waiting %d %d, held %d %d, freeing %d %d, open %d %d, key bytes %d %d, "+
			"tries %d %d",
			waiting, n.waiting, held, n.held, freeing, n.freeing, open, n.open, keyBytes, n.keyBytes, tries, n.tries)
	}
	return c.checkUpgrades()
}

func (c *Core) checkUpgrades() error {
	for _, l := range []*entryList{&c.sent, &c.unsent} {
		for e := l.head; e != nil; e = e.next {
			if e.req == nil || !e.req.upgrades() || e.req.stage == stageReleasing {
				continue
			}
			if hold := e.req.Terms.Under; !hold.stage.holds() || hold.Terms.upgrade != e.req {
				return fmt.Errorf("entry %d is an upgrade, but its hold is at stage %d and has another upgrade", e.number,
					hold.stage)
			}
		}
	}
	return c.checkFrees()
}

func (c *Core) checkFrees() error {
	for _, e := range c.frees {
		if !e.due || !e.freeing || c.sentAs(e.number) != e {
			return fmt.Errorf("entry %d is in frees, but it is not due, not being freed or not in byNumber: %+v", e.number,
				e)
		}
	}
	return c.checkLowering()
}

// Waits reports whether a call waits for request n. It is for simulations.
func (c *Core) Waits(n lockfsm.Number) bool {
	e := c.sentAs(n)
	return e != nil && e.req != nil && e.req.stage == stageWaiting
}

func (c *Core) checkLowering() error {
	ended := func(l loweredEntry) bool { return l.entry.req == nil || !l.entry.req.stage.holds() }
	if i := slices.IndexFunc(c.lowering, ended); i >= 0 {
		return fmt.Errorf("entry %d is being downgraded, but is not held", c.lowering[i].entry.number)
	}
	return c.checkDoubts()
}

func (c *Core) checkDoubts() error {
	doubts := 0
	for e := c.sent.head; e != nil; e = e.next {
		if e.req == nil || e.req.stage != stageDoubt {
			continue
		}
		doubts++
		if t := e.req.Terms; t == nil || t.Grace == 0 || t.doubtEnds.Before(c.doubtEnds) {
			return fmt.Errorf("entry %d is in doubt with %+v, and the first doubt ends at %v", e.number, t, c.doubtEnds)
		}
	}
	if doubts != c.counts.doubts {
		return fmt.Errorf("%d entries are in doubt, but %d are counted", doubts, c.counts.doubts)
	}
	return nil
}
