package founding

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Outcome is the result of a question. Only with Answered is there an answer.
type Outcome uint8

// The outcomes. Silent is never taken for a refusal.
const (
	Silent   Outcome = iota // no answer in time
	Answered                // the asked instance answered
	Refused                 // the machine exists, but nothing listens at the address
	Foreign                 // a program that is no instance of this cluster listens there
	Other                   // another instance than the asked one answered
)

// place is an address that may be asked.
type place struct {
	addr    string
	entry   string // the Join entry that now resolves to the address; empty if none does
	pending uint64 // ID of the pending question. Zero means none
	next    time.Duration
	last    lastResult

	// the address belongs to a voter or a listed instance, or was this instance's last address
	near  bool
	told  bool          // gossip, a question or an answer of another instance has named the address
	tried bool          // a question has ended, whatever the outcome
	ended time.Duration // when the last question ended
	mute  bool          // the last question got no answer
	why   string        // reason why the last question got no answer, in text; empty if unknown
	watch bool          // the address is asked repeatedly while curious reports true
}

// lastResult is the last result from an address, other than silence. Silence does not change the
// result, but after some time the result is too old to count.
type lastResult struct {
	outcome Outcome
	asked   time.Duration // when the question was sent; the answer describes a later moment
	got     time.Duration
	first   time.Duration // when the incarnation in info was first met here
	info    InstanceInfo
	why     string // reason for outcome Foreign, in text; empty if unknown
}

// fresh reports whether the question of this result was sent at most limit ago.
func (s *lastResult) fresh(now, limit time.Duration) bool {
	return s.outcome != Silent && now-s.asked <= limit
}

// seen returns the last answer from the address, if its question was sent at most limit ago.
func (p *place) seen(now, limit time.Duration) (*InstanceInfo, bool) {
	if p.last.outcome != Answered || !p.last.fresh(now, limit) {
		return nil, false
	}
	return &p.last.info, true
}

// Met returns the last answer from an address, if its question was sent at most within ago.
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

// label returns a text for the address, which contains the name of the instance there or, if that
// is unknown, the Join entry.
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

// Entry is an entry of Join with the addresses to which it resolves.
type Entry struct {
	Name     string        // as written in Join
	Addrs    []string      // host:port each; empty if the name does not exist, which is no failure
	Failed   string        // why the entry could not be resolved; empty if it was resolved
	Resolved time.Duration // when the lookup was made
}

// Places sets the addresses to which Join now resolves, and further addresses that gossip knows. An
// address is forgotten, with all its results, when no source names it any more.
func (c *Core) Places(join []Entry, gossip []string) {
	same := slices.EqualFunc(c.join, join, func(a, b Entry) bool {
		return a.Name == b.Name &&
			slices.Equal(a.Addrs, b.Addrs)
	})
	if same && slices.Equal(c.gossip, gossip) { // without a change, do not rebuild places
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

// asker is an address from which a question came, and which can be asked in return.
type asker struct {
	addr string
	at   time.Duration
}

func (c *Core) askedBy(addr string) { c.askers = c.note(c.askers, addr, maxAskers) }

// note adds an address to a list of addresses to ask, or renews its time in that list.
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

// arrange rebuilds places from Join, gossip, the charter, the voters and the lists of addresses to
// ask. An address that was in places before keeps its results.
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

// kept holds the reasons why an address is in places.
type kept struct {
	entry      string
	near, told bool
}

// keep adds an address to places, with its earlier results. keep skips this instance's own address,
// because no other instance can answer there.
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
