package founding

import (
	"cmp"
	"slices"
	"time"
)

// Outcome is the result of a question.
type Outcome uint8

// The outcomes of a question.
const (
	Silent   Outcome = iota // no answer in time; never counts as a refusal
	Answered                // the asked instance answered
	Refused                 // the machine exists, but nothing listens at the address
	Foreign                 // a program that is no instance of this cluster listens there
	Other                   // an instance other than the asked one answered
)

type place struct {
	addr    string
	entry   string // Join entry that resolves to the address; empty if none does
	pending uint64 // ID of the pending question; zero means none
	next    time.Duration
	last    lastResult

	// the address belongs to a voter or a listed instance, or was this instance's last address
	near  bool
	told  bool // gossip, a question or an answer has named the address
	tried bool // a question has ended, with any outcome
	ended time.Duration
	mute  bool   // the last question got no answer
	why   string // why the last question got no answer; empty if unknown
	watch bool   // the address is asked repeatedly while curious reports true
}

// lastResult is the last result from an address, other than silence.
type lastResult struct {
	outcome Outcome
	asked   time.Duration // when the question was sent
	got     time.Duration
	first   time.Duration // when the incarnation in info was first met here
	info    InstanceInfo
	why     string // reason for outcome Foreign; empty if unknown
}

func (s *lastResult) fresh(now, limit time.Duration) bool {
	return s.outcome != Silent && now-s.asked <= limit
}

func (p *place) seen(now, limit time.Duration) (*InstanceInfo, bool) {
	if p.last.outcome != Answered || !p.last.fresh(now, limit) {
		return nil, false
	}
	return &p.last.info, true
}

// Met returns the last answer from an address, unless its question was sent more than `within`
// ago.
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

func (p *place) label() string {
	switch {
	case p.last.outcome == Answered:
		return nameOf(p.last.info.Name, p.addr)
	case p.entry != "" && p.entry != p.addr:
		return p.entry + " (" + p.addr + ")"
	}
	return p.addr
}

// JoinFunc is the name of the entry whose addresses a function of the user returns.
const JoinFunc = "Config.JoinFunc"

// Entry is an entry of Join, or the function JoinFunc, with the addresses to which it resolves.
type Entry struct {
	Name     string        // as written in Join
	Addrs    []string      // host:port each; empty if the name does not exist, which is no failure
	Failed   string        // why the entry could not be resolved; empty if it was resolved
	Resolved time.Duration // time of the lookup
}

// Unresolved says that the addresses of the entry are not known, with the reason and the way out.
func (e *Entry) Unresolved() string {
	switch {
	case e.Name == JoinFunc && e.Failed == "":
		return JoinFunc + " has not returned yet"
	case e.Name == JoinFunc:
		return "Config.JoinFunc fails: " + e.Failed + ": correct it; it must return the host:port of other instances"
	case e.Failed == "":
		return e.Name + ", which Join names, cannot be resolved"
	}
	return e.Name + ", which Join names, cannot be resolved: " + e.Failed + ": correct the entry, or its lookup"
}

// Places sets the addresses to which Join now resolves, and further addresses from gossip. When no
// source names an address any more, the core forgets the address and its results.
func (c *Core) Places(join []Entry, gossip []string) {
	same := slices.EqualFunc(c.join, join, func(a, b Entry) bool {
		return a.Name == b.Name &&
			slices.Equal(a.Addrs, b.Addrs)
	})
	if same && slices.Equal(c.gossip, gossip) {
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

type asker struct {
	addr string
	at   time.Duration
}

func (c *Core) askedBy(addr string) { c.askers = c.note(c.askers, addr, maxAskers) }

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

// arrange rebuilds places from all sources. A kept address keeps its results.
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

type kept struct {
	entry      string
	near, told bool
}

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
