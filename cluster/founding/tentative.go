package founding

import (
	"slices"
	"time"
)

// tentative is rules 4 and 5: bound, and not yet known to be born. With a directory the time counts only while everybody is in reach:
// whoever gave up while the one who has learned Born is away would leave it with a group that has lost its majority and never ends.
func (c *Core) tentative(random Random) {
	if c.until == 0 || (c.durable && c.unreached(c.now-reachedFor) != "") {
		c.until = c.now + bornWithin + time.Duration(random.Spread%uint64(bornSpread))
	}
	if !c.all && !slices.Contains(c.bound, false) {
		c.all = true
		c.events = append(c.events, Event{Kind: AllBound, Group: c.group})
	}
	switch {
	case c.born:
		c.belong(c.group, c.at, c.newest(), "")
	case c.superseded():
	case c.now >= c.until && !c.settings.Solo:
		c.doomed = "the group was not born in time: " + c.Waiting()
	}
}
