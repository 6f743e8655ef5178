package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

type presence struct {
	instance nodeid.ID
	life     uint64
	boot     uint64 // number of the process of that life; zero means unknown
	addr     string
	at       time.Duration // when the instance itself last answered or asked; zero means never
	wall     int64
}

// alive records a start of an instance with a directory. If two addresses or two processes claim
// the same life, alive keeps the first, because the second runs from a copy.
func (c *Core) alive(instance nodeid.ID, life, boot uint64, addr string, met bool) {
	if instance.IsZero() || life == 0 || addr == "" {
		return
	}
	at := slices.IndexFunc(c.lives, func(p presence) bool { return p.instance == instance })
	if at < 0 {
		if len(c.lives) >= maxPlaces {
			c.lives = slices.Delete(c.lives, 0, 1)
		}
		c.lives = append(c.lives, presence{instance: instance, life: life, addr: addr})
		at = len(c.lives) - 1
	}
	p := &c.lives[at]
	if life > p.life+lifeJump && !met { // a false report, because no instance starts so often
		return
	}
	if life > p.life {
		p.life, p.addr, p.boot = life, addr, 0
	}
	if life == p.life && p.boot == 0 {
		p.boot = boot
	}
	if met {
		p.at, p.wall = c.now, c.wall
	}
}

func (c *Core) lastMet(instance nodeid.ID) *presence {
	at := slices.IndexFunc(c.lives, func(p presence) bool { return p.instance == instance && p.at > 0 })
	if at < 0 {
		return nil
	}
	return &c.lives[at]
}

func (c *Core) newestLife(instance nodeid.ID) (life, boot uint64, addr string) {
	if instance == c.instance && c.durable && !c.settling {
		return c.life, c.boot, c.addr
	}
	if at := slices.IndexFunc(c.lives, func(p presence) bool { return p.instance == instance }); at >= 0 {
		return c.lives[at].life, c.lives[at].boot, c.lives[at].addr
	}
	return 0, 0, ""
}

// recognise checks whether an answer shows that another process has this instance's ID. If the two
// processes meet, exactly one of them refuses to take part.
func (c *Core) recognise(who *InstanceInfo) {
	if !c.durable || c.barred != "" {
		return
	}
	if who.Instance == c.instance {
		// self means that the answer comes from this process itself, through another address
		self := who.Addr == c.addr && who.Life == c.life
		if !self && c.yields(who) {
			c.bar("another process runs as this instance at " + who.Addr + ", from a copy of this directory: " +
				recoveryHintCopy)
		}
		return
	}
	listed := c.charter != nil && c.charter.listed(who.Instance) >= 0
	if !listed && !c.votes(who.Instance) {
		return // only a believed answer may bar this instance
	}
	switch {
	case who.AskerLife > c.life && who.AskerAddr == c.addr:
		c.bar("this directory was restored from an older copy, and its instance was started since then: " + recoveryHintOld)
	case who.AskerLife > c.life:
		c.bar("this directory was restored from an older copy, or another process runs from a copy of it at " +
			who.AskerAddr + ": " + recoveryHintOld)
	case who.AskerLife == c.life && who.AskerAddr != c.addr:
		c.bar("another process has started as this instance at " + who.AskerAddr +
			", from a copy of this directory: " + recoveryHintCopy)
	case who.AskerLife == c.life && who.AskerBoot != 0 && who.AskerBoot != c.boot:
		c.bar("this directory was restored from an older copy: another process has made the same start from it: " +
			recoveryHintOld)
	}
}

// WentBack records that this instance's replica lacks what it has acknowledged, and why that is
// known.
func (c *Core) WentBack(now time.Duration, why string) {
	c.now = now
	c.bar("this directory was restored from an older copy (" + why + "): " + recoveryHintOld)
}

const (
	recoveryHintCopy = "one directory serves only one process; empty this one, and the instance joins as a new one"
	recoveryHintOld  = "empty the directory, and the instance joins as a new one"
)

// yields reports whether it is this process that must refuse to take part, and not the other
// process with the same ID. If only one of the two is settling, that process refuses. Otherwise
// the process with the lower life refuses. If the lives are equal, the process with the higher
// address refuses.
func (c *Core) yields(who *InstanceInfo) bool {
	switch {
	case c.settling != who.Resuming:
		return c.settling
	case c.life != who.Life:
		return c.life < who.Life
	}
	return c.addr > who.Addr
}

// SeenElsewhere records that gossip reports this instance's ID at another address. The core asks
// that address, because the report may be about an earlier start.
func (c *Core) SeenElsewhere(now time.Duration, addr string) {
	if c.durable {
		c.Inquire(now, addr)
	}
}

// Inquire makes the core ask an address in any phase. The host calls it if gossip reports a newer
// configuration at that address.
func (c *Core) Inquire(now time.Duration, addr string) {
	c.now = now
	if addr == "" || addr == c.addr || c.settings.Solo {
		return
	}
	c.askedBy(addr)
	c.seenAt = c.note(c.seenAt, addr, maxAskers)
}

func (c *Core) mustAsk(p *place) bool {
	return slices.ContainsFunc(c.seenAt, func(s asker) bool { return s.addr == p.addr })
}

func (c *Core) cleared(p *place) {
	c.seenAt = slices.DeleteFunc(c.seenAt, func(s asker) bool { return s.addr == p.addr })
}

func (c *Core) moved(instance nodeid.ID, life uint64, addr string) {
	at := slices.IndexFunc(c.voters, func(v Voter) bool { return v.Instance == instance })
	if at < 0 || !c.durable || c.voters[at].Life >= life || life > c.voters[at].Life+lifeJump {
		return
	}
	v := c.voters[at]
	v.Addr, v.Life = addr, life
	// The event has no At, because its Voters are not a whole configuration.
	c.events = append(c.events, Event{Kind: Heard, Group: c.group, Voters: []Voter{v}})
}
