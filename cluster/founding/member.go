package founding

import (
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// tentative applies rules 4 and 5. The package comment explains the rule for a directory.
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
		c.doomed = "the group was not founded in time: " + c.Waiting()
	}
}

func (c *Core) belong(group, at uint64, voters []Voter, warning string) {
	c.phase, c.group, c.at, c.voters = Member, group, max(at, 1), slices.Clone(voters)
	c.since, c.sinceWall, c.offers, c.stale = c.now, c.wall, nil, true
	if at := slices.Index(c.gaveUp, group); at >= 0 { // the group has a leader after all
		c.gaveUp = append([]uint64(nil), slices.Delete(c.gaveUp, at, at+1)...)
	}
	c.revision++
	c.events = append(c.events, Event{Kind: Joined, Group: group, At: c.at, Voters: slices.Clone(voters),
		Text: warning})
	if c.charter != nil && c.raft != 0 && c.raft == c.charter.Raft(c.instance) && !c.named() {
		c.remove() // the replica was removed before this instance learned that the group is founded
	}
}

// adopt makes a newborn a member of a group that has a leader. If two such groups are in reach,
// adopt does nothing: an operator must stop one of them.
func (c *Core) adopt() bool {
	var with *InstanceInfo
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || who.Phase != Member || !who.Leader || who.Settings.Solo || len(who.Voters) == 0 {
			continue
		}
		if with != nil && with.Group != who.Group {
			return false
		}
		if with == nil || who.At > with.At {
			with = who
		}
	}
	if with == nil {
		return false
	}
	warning := c.settings.differs(with.Settings)
	c.rulesOf, c.leader, c.supersedes = with.Settings, false, slices.Clone(with.Supersedes)
	c.belong(with.Group, with.At, with.Voters, warning)
	return true
}

// unreached describes which needed instances have not answered a question that was asked after
// the given time. It returns "" if all have answered.
func (c *Core) unreached(after time.Duration) string {
	reached := []nodeid.ID{c.instance}
	names := []string{c.name}
	for _, p := range c.places {
		who, ok := p.seenSince(after, c.now)
		if ok && !slices.Contains(reached, who.Instance) {
			reached, names = append(reached, who.Instance), append(names, who.Name)
		}
	}
	for _, f := range c.needed() {
		if !slices.Contains(names, f) {
			return "founder " + strconv.Quote(f) + " is missing"
		}
	}
	if len(c.settings.Founders) == 0 && len(reached) < c.settings.Replicas {
		return "only " + count(len(reached), c.settings.Replicas) + " can be reached"
	}
	return ""
}
