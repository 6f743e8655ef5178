package birth

import (
	"slices"
	"strconv"
	"time"
)

// belong makes this instance a member of a group that is born.
func (c *Core) belong(group uint64, voters []Voter, warning string) {
	c.phase, c.group, c.voters = Member, group, slices.Clone(voters)
	c.since, c.sinceWall, c.offers, c.stale = c.now, c.wall, nil, true
	c.revision++
	c.events = append(c.events, Event{Kind: Joined, Group: group, Voters: slices.Clone(voters), Text: warning})
}

// adopt makes a newborn that reaches a group with a leader a plain member of it. It does nothing if it reaches two: which of them to
// give up is not for a machine to decide.
func (c *Core) adopt() bool {
	var with *Who
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || who.Phase != Member || !who.Leader || who.Settings.Solo || len(who.Voters) == 0 {
			continue
		}
		if with != nil && with.Group != who.Group {
			return false
		}
		with = who
	}
	if with == nil {
		return false
	}
	warning := ""
	if which := c.settings.difference(with.Settings); which != "" {
		warning = which + " differs from the group's, which holds: make it equal on all instances"
	}
	c.rulesOf, c.leader = with.Settings, false
	c.belong(with.Group, with.Voters, warning)
	return true
}

// member is rules 6 and 7. A member whose group has a leader does nothing here, nor does one with a directory: what it holds may be the
// only copy of what others have been promised, so only people give it up.
func (c *Core) member() {
	if c.leader || c.settings.Solo || c.durable && !bug("durable-group-given-up") {
		return
	}
	over := c.since + max(c.settings.SessionTTL, c.rulesOf.SessionTTL)
	if bug("given-up-while-believed") {
		over = c.since
	}
	if c.now <= over {
		return // its locks may still be believed in
	}
	reason := "group " + groupName(c.group) + " has had no leader for " + (c.now - c.since).Round(time.Second).String()
	// What was learned before that proves nothing: it may date from before the group was lost, or before this instance was cut off.
	other := false
	for _, p := range c.places {
		who, ok := p.seenSince(over, c.now)
		if !ok || !who.Leader || who.Settings.Solo {
			continue
		}
		if who.Group == c.group {
			return // it has only lost sight of its leader
		}
		other = other || who.Phase == Member
	}
	switch {
	case other:
		c.doomed = reason + ", and another group that has one is in reach"
	case c.unreached(over) == "":
		c.doomed = reason + ", and everybody is in reach, so a new group can be founded"
	}
}

// unreached says who of those that the settings ask for has not answered a question put after that time, or returns "".
func (c *Core) unreached(after time.Duration) string {
	reached := []uint64{c.instance}
	names := []string{c.name}
	for _, p := range c.places {
		who, ok := p.seenSince(after, c.now)
		if ok && !slices.Contains(reached, who.Instance) {
			reached, names = append(reached, who.Instance), append(names, who.Name)
		}
	}
	for _, f := range c.settings.Founders {
		if !slices.Contains(names, f) {
			return "founder " + strconv.Quote(f) + " is missing"
		}
	}
	if len(c.settings.Founders) == 0 && len(reached) < c.settings.Replicas {
		return "now " + count(len(reached), c.settings.Replicas) + " can be reached"
	}
	return ""
}
