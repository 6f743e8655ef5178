package founding

import (
	"slices"
	"time"
)

// A directory is what an instance stores beside its bond and its replica, and whether it can. It
// also settles a start from a directory. Without a directory only gaveUp and floor are used.
type directory struct {
	durable  bool
	revision uint64
	unfit    string   // why the directory cannot be written; empty if it can
	barred   string   // why this instance may never take part again; empty if it may
	gaveUp   []uint64 // groups that operators have given up here, oldest first
	floor    int64    // Unix milliseconds; the tokens of a group founded from now on are higher
	lastAddr string   // address at which this instance last took part

	settling    bool
	settleUntil time.Duration // when to end settling; zero means not set
	searchUntil time.Duration // end of the search for other voters after a restart
}

// resume continues from the stored State of an instance that is now at addr. A change that was not
// stored has never been sent, so it may be lost.
func (d *directory) resume(s *State, addr string) {
	d.lastAddr = addr
	if s == nil {
		return
	}
	d.gaveUp, d.floor = slices.Clone(s.GaveUp), s.FloorUnixMS
	if s.Phase != Newborn {
		d.lastAddr, d.settling = s.Addr, true
	}
}

// again returns the directory of the next incarnation, which is at addr.
func (d *directory) again(addr string) directory {
	return directory{
		durable: d.durable, revision: d.revision + 1, unfit: d.unfit, lastAddr: addr, gaveUp: d.gaveUp, floor: d.floor,
	}
}

// allow sets the time at which settling ends, at the first call, and returns it.
func (d *directory) allow(until time.Duration) time.Duration {
	if d.settleUntil == 0 {
		d.settleUntil = until
	}
	return d.settleUntil
}

// settled records that this instance takes part from now on.
func (d *directory) settled(now time.Duration, addr string) {
	d.settling, d.lastAddr, d.settleUntil, d.searchUntil = false, addr, 0, now+searchFor
	d.changed()
}

// changed records that State has changed.
func (d *directory) changed() { d.revision++ }

// fail records that the directory cannot be written.
func (d *directory) fail(why string) {
	d.unfit = "its directory cannot be written (" + why + "): repair or empty it, and start the instance again"
}

// forgo makes an instance go on without its directory.
func (d *directory) forgo() { d.durable = false }

// bar ends the part of this instance for good. It reports whether the instance took part so far.
func (d *directory) bar(text string) bool {
	if d.barred != "" {
		return false
	}
	d.barred = text
	d.changed()
	return true
}

// giveUp records that operators have given a group up.
func (d *directory) giveUp(group uint64) {
	if slices.Contains(d.gaveUp, group) {
		return
	}
	if len(d.gaveUp) >= maxGaveUp {
		d.gaveUp = slices.Delete(d.gaveUp, 0, 1)
	}
	d.gaveUp = append(d.gaveUp, group)
}

// regain records that a group has a leader after all.
func (d *directory) regain(group uint64) {
	if at := slices.Index(d.gaveUp, group); at >= 0 {
		d.gaveUp = append([]uint64(nil), slices.Delete(d.gaveUp, at, at+1)...)
	}
}

// raiseFloor records that this instance has received tokens up to unixMS, in Unix milliseconds. A
// group that this instance founds later has higher tokens. The floor never falls, not even in a
// restart in place, and is part of State. Each rise costs a save, so call Floor rarely.
func (d *directory) raiseFloor(unixMS int64) {
	if unixMS = min(unixMS, maxWall); unixMS > d.floor {
		d.floor = unixMS
		d.revision++
	}
}
