package founding

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// replica holds the raft IDs of this incarnation. An ID must never be used for a second log, though
// a Prepare may arrive twice.
type replica struct {
	raft   uint64 // present raft ID, from the charter or a Prepare; zero means none
	term   uint64 // term of the newest leader that has prepared this incarnation
	used   []Used // raft IDs whose replicas have ended, oldest first
	usedAt uint64 // highest configuration number of the IDs that were dropped from used
	// raft ID of a removed replica, which runs while its vote may be needed; zero means none
	lingers uint64
}

// Used is a raft ID whose replica has ended, and the number of the newest configuration known at
// that time. No Prepare with that raft ID had a higher number.
type Used struct{ Raft, At uint64 }

// Raft returns the present raft ID of this incarnation, or 0 if the incarnation has no replica.
func (c *Core) Raft() uint64 { return c.raft }

// Retired records that a replica of this instance has stopped for good: it stopped by itself, or it
// was removed and its vote is no longer needed. Its raft ID is never used again. The instance may
// be prepared under another ID.
func (c *Core) Retired(now time.Duration, raft uint64) {
	c.now = now
	switch {
	case raft == 0:
	case raft == c.raft:
		c.spend()
	case raft == c.lingers:
		c.lingers = 0
		c.revision++
	}
}

func (c *Core) spend() uint64 {
	raft := c.raft
	c.raft = 0
	c.revision++
	if len(c.used) >= maxUsed {
		c.usedAt = max(c.usedAt, c.used[0].At)
		c.used = slices.Delete(c.used, 0, 1)
	}
	c.used = append(c.used, Used{Raft: raft, At: c.at})
	return raft
}

// remove ends the present raft ID and emits Removed. The replica runs until the host reports
// Retired, because other replicas may need its vote.
func (c *Core) remove() {
	raft := c.spend()
	c.lingers = raft
	if !c.settling {
		c.events = append(c.events, Event{Kind: Removed, Group: c.group, Raft: raft})
	}
}

func (c *Core) told(from nodeid.ID, body []byte) []byte {
	if p, err := decodePrepare(body); err == nil {
		if p.To != c.instance {
			return nil
		}
		a := PrepareAnswer{Instance: c.instance, Raft: p.Raft}
		a.State, a.Detail = c.prepare(from, &p)
		return appendPrepared(nil, a)
	}
	if a, err := decodePush(body); err == nil && a.To == c.instance {
		if a.Group == c.group {
			c.hear(from, a.At, a.Voters)
		}
		return []byte{wireVersion}
	}
	return nil
}

func (c *Core) prepare(from nodeid.ID, p *Prepare) (PreparedState, string) {
	switch {
	case c.phase != Member || c.group != p.Group || c.settings.Solo:
		return Declined, "it does not belong to group " + groupName(p.Group)
	case c.settling:
		return Declined, "it has just been started again and is still looking for other instances"
	case c.unfit != "":
		return Declined, c.unfit
	}
	c.hear(from, p.At, p.Voters)
	if !c.believes(from) {
		return Declined, "the instance that asks is not known to lead the group"
	}
	newest := c.newest()
	switch {
	case p.Raft == c.raft:
		return Running, ""
	case c.spent(p.Raft) || holds(newest, p.Raft):
		return Ended, "" // if a configuration names the ID, a replica has used it
	case p.At <= c.usedAt:
		return Declined, "it has had so many replicas that it cannot tell whether it has had this one"
	case holds(newest, c.raft):
		return Declined, "it runs another replica, which the group's configuration names"
	case p.Term < c.term:
		return Declined, "a later leader has prepared it since"
	}
	if c.raft != 0 {
		c.remove()
	}
	c.raft, c.term, c.lingers = p.Raft, p.Term, 0
	c.revision++
	c.events = append(c.events, Event{Kind: Prepared, Group: c.group, Raft: c.raft})
	return Running, ""
}

func (c *Core) spent(raft uint64) bool {
	return slices.ContainsFunc(c.used, func(u Used) bool { return u.Raft == raft })
}
