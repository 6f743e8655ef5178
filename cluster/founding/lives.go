package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// presence is the newest life of an instance with a directory that was met or heard of.
type presence struct {
	instance nodeid.ID
	life     uint64
	addr     string
	at       time.Duration // when it was last met itself; 0: never
	wall     int64
}

// alive notes a life of an instance with a directory. Of two at different addresses in the same
// life the first stays: the second is a copy.
func (c *Core) alive(instance nodeid.ID, life uint64, addr string, met bool) {
	if instance.IsZero() || life == 0 || addr == "" {
		return
	}
	at := slices.IndexFunc(c.lives, func(p presence) bool { return p.instance == instance })
	if at < 0 {
		if len(c.lives) >= placesMax {
			c.lives = slices.Delete(c.lives, 0, 1)
		}
		c.lives = append(c.lives, presence{instance: instance, life: life, addr: addr})
		at = len(c.lives) - 1
	}
	p := &c.lives[at]
	if life > p.life+lifeJump && !met { // the word of another about it: no instance starts that often
		return
	}
	if life > p.life {
		p.life, p.addr = life, addr
	}
	if met {
		p.at, p.wall = c.now, c.wall
	}
}

// lastMet returns what is known of an instance, if it was met since this start.
func (c *Core) lastMet(instance nodeid.ID) *presence {
	at := slices.IndexFunc(c.lives, func(p presence) bool { return p.instance == instance && p.at > 0 })
	if at < 0 {
		return nil
	}
	return &c.lives[at]
}

// newestLife returns the newest life of an instance that this one knows of, and where it was; 0 if
// none.
func (c *Core) newestLife(instance nodeid.ID) (uint64, string) {
	if instance == c.instance && c.durable && !c.settling {
		return c.life, c.addr
	}
	if at := slices.IndexFunc(c.lives, func(p presence) bool { return p.instance == instance }); at >= 0 {
		return c.lives[at].life, c.lives[at].addr
	}
	return 0, ""
}

// recognise looks at an answer for signs that another process has this instance's ID: it runs from
// a copy of the directory, or this directory is itself an older copy. Exactly one of two that meet
// refuses to take part.
func (c *Core) recognise(who *Who) {
	if !c.durable || c.barred != "" {
		return
	}
	if who.Instance == c.instance {
		self := who.Addr == c.addr && who.Life == c.life // reached by another route
		if !self && c.yields(who) {
			c.bar("another process runs as this instance at " + who.Addr + ", from a copy of this directory: " +
				wayOutCopy)
		}
		return
	}
	listed := c.charter != nil && c.charter.listed(who.Instance) >= 0
	if !listed && !c.votes(who.Instance) {
		return // only the word of a voter or a founder ends this instance for good
	}
	switch {
	case who.AskerLife > c.life && who.AskerAddr == c.addr:
		c.bar("this directory was restored from an older copy, its instance has been started since then: " + wayOutOld)
	case who.AskerLife > c.life:
		c.bar("this directory was restored from an older copy, or another process runs from a copy of it at " +
			who.AskerAddr + ": " + wayOutOld)
	case who.AskerLife == c.life && who.AskerAddr != c.addr:
		c.bar("another process has started as this instance at " + who.AskerAddr +
			", from a copy of this directory: " + wayOutCopy)
	}
}

const (
	wayOutCopy = "one directory serves one process; empty this one, it then joins as a new instance"
	wayOutOld  = "empty the directory, it then joins as a new instance"
)

// yields reports whether it is this process, not the other with its ID, that has to go: who has not
// taken part yet, then whose life is the older one, then whose address sorts last, so that both
// decide alike.
func (c *Core) yields(who *Who) bool {
	switch {
	case c.settling != who.Resuming:
		return c.settling
	case c.life != who.Life:
		return c.life < who.Life
	}
	return c.addr > who.Addr
}

// Suspect takes that gossip shows this instance's ID at another address. Gossip may tell of an
// earlier life, so whoever is there is asked, even if nothing else is to be known now.
func (c *Core) Suspect(now time.Duration, addr string) {
	if c.durable {
		c.Inquire(now, addr)
	}
}

// Inquire takes that somebody is worth asking who he is, whatever the phase: gossip says that a
// newer configuration is known there.
func (c *Core) Inquire(now time.Duration, addr string) {
	c.now = now
	if addr == "" || addr == c.addr || c.settings.Solo {
		return
	}
	c.knocked(addr)
	c.suspects = c.note(c.suspects, addr, knocksMax)
}

// suspected reports whether the place is to be asked whatever the phase.
func (c *Core) suspected(p *place) bool {
	return slices.ContainsFunc(c.suspects, func(s knock) bool { return s.addr == p.addr })
}

// cleared ends the suspicion about a place that has answered or refused.
func (c *Core) cleared(p *place) {
	c.suspects = slices.DeleteFunc(c.suspects, func(s knock) bool { return s.addr == p.addr })
}

// moved passes on where a voter with a directory says that it is, if that is news.
func (c *Core) moved(instance nodeid.ID, life uint64, addr string) {
	at := slices.IndexFunc(c.voters, func(v Voter) bool { return v.Instance == instance })
	if at < 0 || !c.durable || c.voters[at].Life >= life || life > c.voters[at].Life+lifeJump {
		return
	}
	v := c.voters[at]
	v.Addr, v.Life = addr, life
	// no number: it is not the whole configuration
	c.events = append(c.events, Event{Kind: Heard, Group: c.group, Voters: []Voter{v}})
}
