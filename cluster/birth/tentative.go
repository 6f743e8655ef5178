package birth

import (
	"slices"
	"time"
)

// tentative is rules 4 and 5: bound, and not yet known to be born.
func (c *Core) tentative(random Random) {
	if c.until == 0 {
		c.until = c.now + bornWithin + time.Duration(random.Spread%uint64(bornSpread))
	}
	if !c.all && !slices.Contains(c.bound, false) {
		c.all = true
		c.events = append(c.events, Event{Kind: AllBound, Group: c.group})
	}
	switch {
	case c.born:
		c.belong(c.group, c.charter.Voters, "")
	case c.now >= c.until && !c.settings.Solo:
		c.doomed = "the group was not born in time: " + c.Waiting()
	}
}
