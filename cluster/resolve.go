package cluster

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// Times of resolving Join. Names are hints that change: they are looked up for ever, faster while there is no leader, since birth, and
// finding a group whose instances have all moved, depend on them. Each pause is up to a quarter longer at random, so that a thousand
// instances that were started together do not ask DNS together for ever.
const (
	resolveEvery     = time.Second
	resolveEverySlow = 10 * time.Second
	resolveEveryFunc = 2 * time.Second        // in place of resolveEvery: behind a function there is often a service that counts calls
	always           = time.Duration(1) << 62 // resolved for ever: an IP address
)

// resolving is one entry of Join, or Config.JoinFunc, and what is known about it.
type resolving struct {
	entry founding.Entry
	kind  form
	list  func(context.Context) ([]string, error) // its host:port lines
	known map[string][]string                     // addresses last found, by host of the present list
	none  []string                                // lines of a list whose host has no address
	busy  bool
	asked time.Duration // the lookup under way, or the last
	next  time.Duration
	loud  time.Duration // when a panic was last told with its stack
}

func newResolving(cfg *Config, name string) resolving {
	r := resolving{entry: founding.Entry{Name: name, Resolved: -always}}
	if r.kind, r.list = cfg.lister(name); r.kind != formHost {
		return r
	}
	_, addr, _ := parseJoin(name)
	host, port, _ := net.SplitHostPort(addr)
	if net.ParseIP(host) != nil {
		r.entry.Addrs, r.entry.Resolved, r.next = []string{net.JoinHostPort(host, port)}, always, always
	}
	return r
}

// resolvings are all entries of a Config.
func resolvings(cfg *Config) []resolving {
	var all []resolving
	for _, name := range cfg.Join {
		all = append(all, newResolving(cfg, name))
	}
	if cfg.JoinFunc != nil {
		all = append(all, resolving{entry: founding.Entry{Name: joinFunc, Resolved: -always}, kind: formFunc, list: cfg.askFunc})
	}
	return all
}

// pauseAfter is how long an entry is left alone between the beginnings of two lookups, without the random part.
func (c *Cluster) pauseAfter(r *resolving) time.Duration {
	switch {
	case c.hasLeader():
		return resolveEverySlow
	case r.kind == formFunc:
		return resolveEveryFunc
	}
	return resolveEvery
}

// resolve starts the lookups that are due and returns when the next one is.
func (c *Cluster) resolve(now time.Duration) time.Duration {
	next := now + time.Hour
	for i := range c.own.join {
		r := &c.own.join[i]
		if r.busy || r.next == always {
			continue
		}
		pause := c.pauseAfter(r)
		r.next = min(r.next, now+pause+pause/4) // what was planned under a leader does not wait that long without one
		if r.next > now {
			next = min(next, r.next)
			continue
		}
		r.busy, r.asked, r.next = true, now, now+pause+time.Duration(c.word()%uint64(pause/4))
		c.lookup(i, now)
	}
	return next
}

// resolved takes what a lookup found. A name that does not exist yet is as good as one with no addresses; a lookup that failed says
// nothing about who is there, so it blocks birth, and the addresses that were known stay worth asking.
func (c *Cluster) resolved(i int, asked time.Duration, got found) {
	r := &c.own.join[i]
	r.busy = false
	c.own.moved = true
	if got.stack != nil {
		c.panicked(r, got)
	}
	if got.err != nil && !missing(got.err) {
		r.entry.Failed = clipped(got.err).Error()
		return
	}
	before := r.entry.Addrs
	addrs, failed := r.take(got.lines)
	if err := checkMany(len(addrs)); err != nil {
		r.entry.Failed = err.Error()
		return
	}
	r.entry.Addrs, r.entry.Failed = addrs, failed
	if failed == "" {
		r.entry.Resolved = asked
	}
	c.appeared(before, addrs)
}

// take makes the addresses of an entry from what was found: one host that could not be looked up keeps the addresses that it had.
func (r *resolving) take(lines []foundLine) (addrs []string, failed string) {
	before := r.known
	r.known, r.none = make(map[string][]string), nil
	for _, l := range lines {
		ips := l.addrs
		if l.err != nil && !missing(l.err) {
			ips, failed = before[l.host], clipped(l.err).Error()
			if r.kind != formHost {
				failed = l.host + ": " + failed
			}
		} else if len(ips) == 0 && r.kind != formHost {
			r.none = append(r.none, net.JoinHostPort(l.host, l.port))
		}
		r.known[l.host] = ips
		for _, ip := range ips {
			if parsed, err := netip.ParseAddr(ip); err == nil {
				ip = parsed.Unmap().String()
			}
			addrs = append(addrs, net.JoinHostPort(ip, l.port))
		}
	}
	slices.Sort(addrs) // servers rotate them, and that is no news
	return slices.Compact(addrs), failed
}

// appeared lets a member gossip at once with whoever has got an address behind Join, a few at a time: an instance that comes back at
// another address need not wait for its turn among the lost.
func (c *Cluster) appeared(before, now []string) {
	if c.own.core.Phase() != founding.Member {
		return // everybody is asked already, and whoever answers is met
	}
	many := 0
	for _, addr := range now {
		if addr != c.cfg.Advertise && many < rejoinMany && !slices.Contains(before, addr) {
			many++
			if c.gossip == nil || len(c.cfg.Settings.Founders) > 0 {
				c.own.core.Inquire(c.now(), addr) // only a founder gossips
				continue
			}
			c.own.find.met(addr, c.now())
		}
	}
}

// panicked tells the panic of a user's function, with its stack, once in a while.
func (c *Cluster) panicked(r *resolving, got found) {
	if now := c.now(); r.loud == 0 || now-r.loud >= loudEvery {
		r.loud = now
		c.cfg.Logger.Error(r.entry.Name+" panicked; it is called again", "panic", clipped(got.err).Error(), "stack", string(got.stack))
	}
}

// places tells the core whom it may ask, if that has changed.
func (c *Cluster) places() {
	o := &c.own
	if !o.moved {
		return
	}
	o.moved = false
	entries := make([]founding.Entry, 0, len(o.join))
	for i := range o.join {
		entries = append(entries, o.join[i].entry)
	}
	seen := make([]string, 0, len(o.peers))
	for _, name := range sortedNames(o.peers) {
		seen = append(seen, o.peers[name].meta.Addr)
	}
	o.core.Places(entries, seen)
}
