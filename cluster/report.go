package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/birth"
)

// Times of the log. Birth takes a second where all is well, and then nobody wants to read about it.
const (
	waitingAfter = 3 * time.Second  // how long the same thing is awaited before it is worth a line
	waitingEvery = 10 * time.Second // between two such lines
	loudEvery    = time.Minute      // between two lines about the same mistake
)

// report is what was said in the log. The owner goroutine owns it.
type report struct {
	waiting string        // what is awaited now
	since   time.Duration // and since when
	line    string        // what the last line said
	lineAt  time.Duration
	groupAt time.Duration // a second group
	knockAt time.Duration // somebody at a closed group's door
}

// report writes a line if the same thing has been awaited for a while, and returns when to look again.
func (c *Cluster) report(now time.Duration) time.Duration {
	said := &c.own.said
	waiting := c.view.Load().Waiting
	if waiting != said.waiting {
		said.waiting, said.since = waiting, now
	}
	_, two, again := c.rival()
	if two {
		return now + loudEvery
	}
	idle := now + time.Hour
	if again != 0 {
		idle = again
	}
	if waiting == "" || waiting == said.line {
		return idle
	}
	due := said.since + waitingAfter
	if said.lineAt != 0 {
		due = max(due, said.lineAt+waitingEvery)
	}
	if now < due {
		return min(due, idle)
	}
	said.line, said.lineAt = waiting, now
	c.cfg.Logger.Info(waiting)
	return idle
}

// belongs says which group this instance belongs to now.
func (c *Cluster) belongs(e birth.Event) {
	c.own.said.line = ""
	text := "joined the group"
	if c.own.raft != 0 {
		text = "the group is born, with this instance as a voter"
	}
	c.cfg.Logger.Info(text, "group", idText(e.Group), "voters", len(e.Voters), "instance", c.own.core.Instance())
	if e.Text != "" {
		c.cfg.Logger.Warn(e.Text)
	}
}

// waiting is what this instance waits for, or that there are two groups, which nothing but people can end.
func (c *Cluster) waiting() string {
	m, two, _ := c.rival()
	if !two {
		waiting := c.own.core.Waiting()
		return waiting + c.nobody(waiting)
	}
	text := "two groups of this cluster have leaders and grant the same locks: stop the instances of one of them and start them again"
	if now, at := c.now(), c.own.said.groupAt; at == 0 || now-at >= loudEvery {
		c.own.said.groupAt = now
		c.cfg.Logger.Error(text, "this", idText(c.own.core.Group()), "other", idText(m.Group), "at", m.Addr, "name", m.Name)
	}
	return text + " (this is " + idText(c.own.core.Group()) + ", " + m.Addr + " belongs to " + idText(m.Group) + ")"
}

// knocked says that somebody asked an instance that runs alone.
func (c *Cluster) knocked(from string) {
	now := c.now()
	if at := c.own.said.knockAt; at != 0 && now-at < loudEvery {
		return
	}
	c.own.said.knockAt = now
	c.cfg.Logger.Warn("refused another instance, because this one runs alone: set Join on all instances", "from", from)
}
