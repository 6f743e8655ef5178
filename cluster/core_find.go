package cluster

import (
	"slices"
	"time"
)

const (
	rejoinEvery = 5 * time.Second // plus a random time up to that
	rejoinPause = 5 * time.Second // between two attempts at an address that has answered a question
	rejoinMany  = 4               // attempts under way
	maxAddrs    = 256             // addresses of former members that are remembered
)

// finder decides which addresses to gossip with besides those that gossip sees. memberlist forgets
// a member half a minute after it was declared dead. Two parts of a cluster that have forgotten
// each other would never meet again. So the finder tries, a few at a time and without end, every
// address that was ever seen and every founder that was met. With Replicas it also tries every
// voter and every address behind Join.
type finder struct {
	self  string
	next  time.Duration
	turn  uint64
	known []string                 // addresses once seen, oldest first
	tried map[string]time.Duration // the time of the last attempt for each address; iterated only to delete old ones
	now   []string                 // addresses that have answered a question, so that they can be joined at once
	busy  map[string]bool          // attempts under way
}

func newFinder(self string) finder {
	return finder{self: self, tried: make(map[string]time.Duration), busy: make(map[string]bool)}
}

// met records that an instance has just answered at the address.
func (f *finder) met(addr string, now time.Duration) {
	if last, tried := f.tried[addr]; (!tried || now-last > rejoinPause) && !slices.Contains(f.now, addr) {
		f.now = append(f.now, addr)
	}
}

func (f *finder) remember(addr string) {
	if addr == "" || addr == f.self || slices.Contains(f.known, addr) {
		return
	}
	if len(f.known) >= maxAddrs {
		f.known = slices.Delete(f.known, 0, 1)
	}
	f.known = append(f.known, addr)
}

// due returns the addresses to join now: those that have just answered, and in each round some of
// the missing ones in turn. The parameter here lists the addresses that gossip sees.
func (f *finder) due(now time.Duration, wanted, here []string, random uint64) []string {
	var out []string
	full := func() bool { return len(f.busy) >= rejoinMany }
	pick := func(addr string) bool {
		if full() || addr == "" || addr == f.self || f.busy[addr] || slices.Contains(here, addr) ||
			slices.Contains(out, addr) {
			return false
		}
		out = append(out, addr)
		f.busy[addr], f.tried[addr] = true, now
		return true
	}
	for len(f.now) > 0 && !full() { // these come first, because gossip then finds others
		pick(f.now[0])
		f.now = f.now[1:]
	}
	if f.next > now {
		return out
	}
	f.next = now + rejoinEvery + time.Duration(random%uint64(rejoinEvery))
	for addr, last := range f.tried {
		if now-last > time.Hour {
			delete(f.tried, addr)
		}
	}
	all := slices.Concat(wanted, f.known)
	for n := 0; n < len(all) && len(f.busy) < rejoinMany; n++ {
		f.turn++
		pick(all[f.turn%uint64(len(all))])
	}
	return out
}

// rejoin decides with which addresses to gossip now, and returns the time of the next round. The
// argument word is random.
func (c *Core) rejoin(now time.Duration, word uint64) time.Duration {
	if !c.cfg.Gossips {
		return now + idle
	}
	if len(c.find.now) == 0 && c.find.next > now {
		return c.find.next
	}
	wanted := c.Founding.Founders() // only founders take part in gossip
	if len(c.cfg.Founding.Settings.Founders) == 0 {
		wanted = nil
		for _, entry := range c.join {
			wanted = append(wanted, entry.Addrs...)
		}
		for _, v := range c.book.Voters() {
			wanted = append(wanted, v.Addr)
		}
	}
	var here []string
	for _, m := range c.peers {
		here = append(here, m.Addr)
	}
	c.acts.Gossip = c.find.due(now, wanted, here, word)
	return c.find.next
}

// Gossiped records that an attempt to gossip with an address has ended.
func (c *Core) Gossiped(addr string) { delete(c.find.busy, addr) }
