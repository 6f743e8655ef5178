package founding

import (
	"cmp"
	"slices"
	"time"
)

// Floor records that this instance has received tokens up to unixMS, in Unix milliseconds. A group
// that this instance founds later has higher tokens. The floor never falls, not even in a restart
// in place, and is part of State. Each rise costs a save, so call Floor rarely.
func (c *Core) Floor(unixMS int64) {
	if unixMS = min(unixMS, maxWall); unixMS > c.floor {
		c.floor = unixMS
		c.revision++
	}
}

func above(floor int64) int64 {
	if floor == 0 {
		return 0
	}
	return min(floor+1, maxWall)
}

// tooHigh returns why the founding time would be refused, or "". The time must be higher than
// every token that a listed instance has received, but not too far ahead of the clock of any of
// them.
func (c *Core) tooHigh(list []candidate) string {
	highest := slices.MaxFunc(list, func(a, b candidate) int { return cmp.Compare(a.floor, b.floor) })
	for _, l := range list {
		apart := time.Duration(above(highest.floor)-l.wall) * time.Millisecond
		if apart > c.settings.slack() {
			return nameOf(highest.name, highest.addr) +
				" has seen tokens of an earlier group from as late as " + clockText(highest.floor) +
				", and the clock of " + nameOf(l.name, l.addr) + " is " + apart.String() +
				" behind that: set the clocks right, or wait until then"
		}
	}
	return ""
}
