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
	Refused                 // the machine answers, but nothing listens at the address
	Foreign                 // the program that listens there is no instance of this cluster
	Other                   // another instance than the asked one answers there
)

// place is one address that may be asked.
type place struct {
	addr    string
	entry   string // the Join entry that resolves to it now; empty if there is none
	pending uint64 // the question in flight. Zero means none
	next    time.Duration
	last    lastResult

	near  bool          // it belongs to a voter, is on the charter's list, or is this instance's last address
	told  bool          // it was named by gossip, by a question or by another instance's answer
	tried bool          // a question has ended, whatever the outcome
	ended time.Duration // when the last one did
	mute  bool          // the last one has ended without an answer
	why   string        // the reason, for people; empty if unknown
	watch bool          // it is asked again and again while curious returns true
}

// lastResult is the last definite result about a place. A question without an answer does not
// change it.
type lastResult struct {
	outcome Outcome
	asked   time.Duration // when the question was sent; the answer describes a later moment
	got     time.Duration
	first   time.Duration // when this life first answered at this address
	info    InstanceInfo
	why     string // of outcome Foreign, for people; empty if unknown
}

// fresh reports whether the result is recent enough to prove something now.
func (s *lastResult) fresh(now, limit time.Duration) bool {
	return s.outcome != Silent && now-s.asked <= limit
}

// seen returns the answer of the instance at the place, if it was asked at most limit ago.
func (p *place) seen(now, limit time.Duration) (*InstanceInfo, bool) {
	if p.last.outcome != Answered || !p.last.fresh(now, limit) {
		return nil, false
	}
	return &p.last.info, true
}

// Met returns the last answer of the instance at an address, if it was asked at most that long ago.
func (c *Core) Met(now time.Duration, addr string, within time.Duration) (InstanceInfo, bool) {
	if at, found := find(c.places, addr); found {
		if who, ok := c.places[at].seen(now, within); ok {
			return *who, true
		}
	}
	return InstanceInfo{}, false
}

func (p *place) seenSince(after, now time.Duration) (*InstanceInfo, bool) {
	who, ok := p.seen(now, reachedFor)
	return who, ok && p.last.asked > after
}

// label names the place for people: by the name of its instance if known, else by its Join entry.
func (p *place) label() string {
	switch {
	case p.last.outcome == Answered:
		return nameOf(p.last.info.Name, p.addr)
	case p.entry != "" && p.entry != p.addr:
		return p.entry + " (" + p.addr + ")"
	}
	return p.addr
}

func nameOf(name, addr string) string {
	if name == "" {
		return addr
	}
	return strconv.Quote(name) + " (" + addr + ")"
}

// Entry is one entry of Join and what it resolves to.
type Entry struct {
	Name     string        // as the user wrote it
	Addrs    []string      // host:port each; empty without failure if the name does not exist
	Failed   string        // why it could not be resolved; empty if it could
	Resolved time.Duration // when the lookup was made
}

// Places sets what Join resolves to now and further addresses that gossip knows. An address that is
// no longer named is forgotten, with all results about it.
func (c *Core) Places(join []Entry, gossip []string) {
	same := slices.EqualFunc(c.join, join, func(a, b Entry) bool {
		return a.Name == b.Name &&
			slices.Equal(a.Addrs, b.Addrs)
	})
	if same && slices.Equal(c.gossip, gossip) { // avoids needless work in a large fleet
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

// asker is the address of an instance that has asked this one.
type asker struct {
	addr string
	at   time.Duration
}

func (c *Core) askedBy(addr string) { c.askers = c.note(c.askers, addr, maxAskers) }

// note adds an address to a list of addresses to ask, or sets its time anew if the list has it.
func (c *Core) note(list []asker, addr string, most int) []asker {
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
		list = append(list, asker{addr: addr, at: c.now})
		c.stale = true
	}
	return list
}

// arrange rebuilds the places from Join, gossip, askers and the charter. A place that existed
// before keeps its results.
func (c *Core) arrange() {
	known := len(c.askers) + len(c.tips)
	c.askers = slices.DeleteFunc(c.askers, func(k asker) bool { return c.now-k.at > askerFor })
	c.tips = slices.DeleteFunc(c.tips, func(k asker) bool { return c.now-k.at > tipFor })
	if !c.stale && len(c.askers)+len(c.tips) == known {
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
	c.keep(old, c.lastAddr, kept{near: true})
	for _, addr := range c.gossip {
		c.keep(old, addr, kept{told: true})
	}
	for _, k := range slices.Concat(c.askers, c.tips) {
		c.keep(old, k.addr, kept{told: true})
	}
	c.seenAt = slices.DeleteFunc(c.seenAt, func(s asker) bool {
		_, found := find(c.places, s.addr)
		return !found || c.now-s.at > seenAtFor
	})
}

// kept lists the reasons why an address is one of the places.
type kept struct {
	entry      string
	near, told bool
}

// keep adds one address to the places, with the earlier results about it. It skips this instance's
// own address: no other instance can answer there.
func (c *Core) keep(old []*place, addr string, why kept) {
	if addr == "" || addr == c.addr || (why.entry == "" && len(c.places) >= maxPlaces) {
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

func find(places []*place, addr string) (int, bool) {
	return slices.BinarySearchFunc(places, addr, func(p *place, a string) int { return cmp.Compare(p.addr, a) })
}
