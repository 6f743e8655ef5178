package cluster

import (
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// A healthy founding takes about a second and logs nothing.
const (
	waitingAfter = 3 * time.Second  // a wait must last this long before it is logged
	waitingEvery = 10 * time.Second // shortest time between two logged waits
	loudEvery    = time.Minute      // shortest time between two log lines about the same problem
)

// report holds what was logged, so that no message is logged too often.
type report struct {
	waiting    string
	since      time.Duration // start of the current wait
	line       string        // the last logged text
	lineAt     time.Duration
	groupAt    time.Duration // last log line about a second group
	strangerAt time.Duration // when logStranger last logged; zero means never
	twin       Member        // another instance with the name of this one
	twinAt     time.Duration // when gossip first reported twin
	twinned    bool          // twin was logged
	unresolved string        // the last logged text of Status.Unresolved
	bareSince  time.Duration // when Status.Unresolved began; zero while it is empty
}

// twinAfter is the time for which another instance must have this instance's name before
// namesake warns. An earlier incarnation of this instance, which had the same name, disappears
// from gossip sooner.
const twinAfter = rivalAfter

// namesake returns a warning if another instance has had this instance's name for a while. Gossip
// does not prove the name, so the warning changes no decision.
func (c *Cluster) namesake(now time.Duration, members []Member) string {
	said := &c.own.said
	i := slices.IndexFunc(members, func(m Member) bool {
		return !m.Self && m.Name == c.cfg.Name && m.Group == c.own.core.Founding.Group() && m.Group != 0
	})
	switch {
	case i < 0:
		said.twin = Member{}
		return ""
	case members[i].Instance != said.twin.Instance:
		said.twin, said.twinAt, said.twinned = members[i], now, false
	}
	if now-said.twinAt < twinAfter {
		return ""
	}
	text := strconv.Quote(c.cfg.Name) + " is the name of another instance too, at " + members[i].Addr +
		": only one of the two can vote; give each instance a Name of its own"
	if !said.twinned {
		said.twinned = true
		c.cfg.Logger.Warn("another instance has the name of this one: only one of the two can vote; give each "+
			"instance a Name of its own",
			"name", c.cfg.Name, "addr", members[i].Addr, "instance", members[i].Instance)
	}
	return text
}

// If Status.Waiting has not changed for a while, report logs it. The result is the time of the
// next check.
func (c *Cluster) report(now time.Duration) time.Duration {
	said := &c.own.said
	waiting := c.view.Load().Waiting
	c.reportUnresolved(now)
	if waiting != said.waiting {
		said.waiting, said.since = waiting, now
	}
	_, two := c.own.core.Rival()
	if two {
		return now + loudEvery
	}
	quiet := now + idle
	if said.twin.Name != "" && !said.twinned {
		quiet = max(said.twinAt+twinAfter, now+time.Second)
	}
	if waiting == "" || waiting == said.line {
		return quiet
	}
	due := said.since + waitingAfter
	if said.lineAt != 0 {
		due = max(due, said.lineAt+waitingEvery)
	}
	if now < due {
		return min(due, quiet)
	}
	said.line, said.lineAt = waiting, now
	if c.cfg.Awaited != nil {
		waiting = c.cfg.Awaited(waiting)
	}
	level := slog.LevelInfo
	if birth := c.own.core.Founding; birth.Phase() == founding.Member && birth.Waiting() != "" {
		level = slog.LevelWarn // its group has no leader
	}
	c.cfg.Logger.Log(c.ctx, level, waiting)
	return quiet
}

// reportUnresolved logs Status.Unresolved once it has lasted. Lookups are repeated, so there is a
// later turn.
func (c *Cluster) reportUnresolved(now time.Duration) {
	said, text := &c.own.said, c.view.Load().Unresolved
	switch {
	case text == "":
		said.bareSince = 0
	case said.bareSince == 0:
		said.bareSince = max(now, 1)
	case now-said.bareSince >= waitingAfter && text != said.unresolved:
		said.unresolved = text
		c.cfg.Logger.Warn("an entry of Join leads to no instance; the group works without it, but an instance that " +
			"restarts may need it: " + text)
	}
}

func (c *Cluster) belongs(e founding.Event) {
	c.own.said.line = ""
	text := "joined the group"
	switch {
	case c.own.back && c.own.core.Raft() != 0:
		text = "back in the group, as a voter, from the directory"
	case c.own.back:
		text = "back in the group, from the directory"
	case c.own.core.Raft() != 0:
		text = "the group is founded, with this instance as a voter"
	}
	c.cfg.Logger.Info(text, "group", idText(e.Group), "voters", len(e.Voters), "instance",
		c.own.core.Founding.Instance())
	if e.Text != "" {
		c.cfg.Logger.Warn(e.Text)
	}
}

// waiting returns the text for Status.Waiting: what this instance waits for, or a warning if two
// groups exist. Only an operator can repair that.
func (c *Cluster) waiting() string {
	m, two := c.own.core.Rival()
	if !two {
		waiting := c.own.core.Founding.Waiting()
		if c.own.core.Founding.Phase() == founding.Bound {
			return waiting // it waits only for the instances in its charter, so Join does not matter
		}
		return waiting + c.own.join.Trouble(waiting)
	}
	text := "two groups of this cluster have leaders and grant the same locks: stop the instances of one of them " +
		"and start them again"
	if now, at := c.now(), c.own.said.groupAt; at == 0 || now-at >= loudEvery {
		c.own.said.groupAt = now
		c.cfg.Logger.Error(text, "this", idText(c.own.core.Founding.Group()), "other", idText(m.Group), "at", m.Addr,
			"name", m.Name)
	}
	return text + " (this is " + idText(c.own.core.Founding.Group()) + ", " + m.Addr + " belongs to " +
		idText(m.Group) + ")"
}

func (c *Cluster) logStranger(from string) {
	now := c.now()
	if at := c.own.said.strangerAt; at != 0 && now-at < loudEvery {
		return
	}
	c.own.said.strangerAt = now
	c.cfg.Logger.Warn("refused another instance, because this one runs alone: set Join on all instances", "from", from)
}
