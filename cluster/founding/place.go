package founding

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Outcome is how a question ended. Only an Answered one carries an answer.
type Outcome uint8

// The outcomes. Silent is no answer at all, never a refusal.
const (
	Silent   Outcome = iota // no answer in time
	Answered                // the asked instance answered
	Refused                 // the machine is there, and nobody listens at the address
	Foreign                 // whoever listens there is not one of us
	Other                   // another instance than the asked one answers there
)

// place is one address that is asked who lives there.
type place struct {
	addr    string
	entry   string // the Join entry that resolves to it now; empty: a place known from gossip or from its own questions
	pending uint64 // the question in flight, 0: none
	next    time.Duration
	last    sighting

	near  bool          // a voter, on the charter's list, or this instance's last address
	told  bool          // gossip, a question or another instance's answer has named it
	tried bool          // a question has ended, whatever the outcome
	ended time.Duration // when the last one did
	mute  bool          // the last one has ended without an answer
	why   string        // and why, for people; empty if it is not known
	watch bool          // it is asked again and again, for as long as it matters who the others are
}

// sighting is the last definite thing that was learned about a place. Silence leaves it as it is:
// it grows old instead.
type sighting struct {
	outcome Outcome
	asked   time.Duration // an answer describes some moment after it
	got     time.Duration
	first   time.Duration // since when it has been this life that is met here
	who     Who
	why     string // of outcome Foreign, for people; empty if it is not known
}

// fresh reports whether the sighting proves something about now.
func (s *sighting) fresh(now, limit time.Duration) bool {
	return s.outcome != Silent && now-s.asked <= limit
}

// seen returns who was met at the place, if that was not longer ago than limit.
func (p *place) seen(now, limit time.Duration) (*Who, bool) {
	if p.last.outcome != Answered || !p.last.fresh(now, limit) {
		return nil, false
	}
	return &p.last.who, true
}

// Met returns what the instance at an address has answered last, if that was asked at most that
// long ago.
func (c *Core) Met(now time.Duration, addr string, within time.Duration) (Who, bool) {
	if at, found := find(c.places, addr); found {
		if who, ok := c.places[at].seen(now, within); ok {
			return *who, true
		}
	}
	return Who{}, false
}

// seenSince returns who was met at the place lately by a question put after that time.
func (p *place) seenSince(after, now time.Duration) (*Who, bool) {
	who, ok := p.seen(now, reachedFor)
	return who, ok && p.last.asked > after
}

// label names the place for people: by its tenant's name where it is known, else by the Join entry
// it comes from.
func (p *place) label() string {
	switch {
	case p.last.outcome == Answered:
		return nameOf(p.last.who.Name, p.addr)
	case p.entry != "" && p.entry != p.addr:
		return p.entry + " (" + p.addr + ")"
	}
	return p.addr
}

// nameOf names an instance for people.
func nameOf(name, addr string) string {
	if name == "" {
		return addr
	}
	return strconv.Quote(name) + " (" + addr + ")"
}

// Entry is one entry of Join and what it resolves to.
type Entry struct {
	Name     string        // as the user wrote it
	Addrs    []string      // host:port each; a name that does not exist (yet) has none, which is no failure
	Failed   string        // why it could not be resolved; empty: it could
	Resolved time.Duration // when it was asked for
}

// Places takes what Join resolves to now and, as further places to ask, addresses that gossip
// knows. An address that is no longer named is forgotten, with what was learned there.
func (c *Core) Places(join []Entry, gossip []string) {
	same := slices.EqualFunc(c.join, join, func(a, b Entry) bool {
		return a.Name == b.Name &&
			slices.Equal(a.Addrs, b.Addrs)
	})
	if same && slices.Equal(c.gossip, gossip) { // a fleet of a thousand is arranged only when it has changed
		for i, e := range join {
			c.join[i].Failed, c.join[i].Resolved = e.Failed, e.Resolved
		}
		return
	}
	c.join = c.join[:0]
	for _, e := range join {
		e.Addrs = slices.Clone(e.Addrs)
		c.join = append(c.join, e)
	}
	c.gossip, c.stale = slices.Clone(gossip), true
}

// knock is somebody who asked us, and so can be asked.
type knock struct {
	addr string
	at   time.Duration
}

// knocked remembers the asker of a question as a place to ask.
func (c *Core) knocked(addr string) { c.knocks = c.note(c.knocks, addr, knocksMax) }

// note adds an address to a list of those that are worth asking, or renews it there.
func (c *Core) note(list []knock, addr string, most int) []knock {
	if addr == "" || addr == c.addr {
		return list
	}
	for i := range list {
		if list[i].addr == addr {
			list[i].at = c.now
			return list
		}
	}
	if len(list) < most {
		list = append(list, knock{addr: addr, at: c.now})
		c.stale = true
	}
	return list
}

// arrange brings the places in line with Join, gossip, knocks and the charter. Those that stay keep
// what was learned there.
func (c *Core) arrange() {
	known := len(c.knocks) + len(c.tips)
	c.knocks = slices.DeleteFunc(c.knocks, func(k knock) bool { return c.now-k.at > knockFor })
	c.tips = slices.DeleteFunc(c.tips, func(k knock) bool { return c.now-k.at > tipFor })
	if !c.stale && len(c.knocks)+len(c.tips) == known {
		return
	}
	c.stale = false
	old := c.places
	c.places = make([]*place, 0, len(old))
	for _, e := range c.join {
		for _, addr := range e.Addrs {
			c.keep(old, addr, kept{entry: e.Name})
		}
	}
	if c.charter != nil {
		for _, l := range c.charter.List {
			c.keep(old, l.Addr, kept{near: true})
		}
	}
	for _, v := range c.voters {
		c.keep(old, v.Addr, kept{near: true})
	}
	c.keep(old, c.home, kept{near: true})
	for _, addr := range c.gossip {
		c.keep(old, addr, kept{told: true})
	}
	for _, k := range slices.Concat(c.knocks, c.tips) {
		c.keep(old, k.addr, kept{told: true})
	}
	c.suspects = slices.DeleteFunc(c.suspects, func(s knock) bool {
		_, found := find(c.places, s.addr)
		return !found || c.now-s.at > suspectFor
	})
}

// kept is why an address is one of the places.
type kept struct {
	entry      string
	near, told bool
}

// keep adds one address to the places, with what was known about it. This instance's own address
// needs no asking: no other can answer there.
func (c *Core) keep(old []*place, addr string, why kept) {
	if addr == "" || addr == c.addr || (why.entry == "" && len(c.places) >= placesMax) {
		return
	}
	at, found := find(c.places, addr)
	if found {
		p := c.places[at]
		p.near, p.told = p.near || why.near, p.told || why.told
		return
	}
	p := &place{addr: addr}
	if i, known := find(old, addr); known {
		p = old[i]
	}
	p.entry, p.near, p.told = why.entry, why.near, why.told
	c.places = slices.Insert(c.places, at, p)
}

// find returns where the address is, or belongs, in places sorted by address.
func find(places []*place, addr string) (int, bool) {
	return slices.BinarySearchFunc(places, addr, func(p *place, a string) int { return cmp.Compare(p.addr, a) })
}
