package cluster

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/mortise-lock/mortise/cluster/birth"
)

// Times of resolving Join. Names are hints that change: they are looked up for ever, faster while birth depends on them.
const (
	resolveEvery     = time.Second
	resolveEverySlow = 10 * time.Second
	resolveWithin    = 2 * time.Second
	always           = time.Duration(1) << 62 // resolved for ever: an IP address
)

// resolving is one entry of Join and what is known about it.
type resolving struct {
	entry birth.Entry
	host  string
	port  string
	busy  bool
	next  time.Duration
}

func newResolving(name string) resolving {
	r := resolving{entry: birth.Entry{Name: name, Resolved: -always}}
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return r // refused by Config.check before
	}
	r.host, r.port = host, port
	if net.ParseIP(host) != nil {
		r.entry.Addrs, r.entry.Resolved, r.next = []string{net.JoinHostPort(host, port)}, always, always
	}
	return r
}

// resolve starts the lookups that are due and returns when the next one is.
func (c *Cluster) resolve(now time.Duration) time.Duration {
	next := now + time.Hour
	for i := range c.own.join {
		r := &c.own.join[i]
		if r.busy || r.next == always {
			continue
		}
		if r.next > now {
			next = min(next, r.next)
			continue
		}
		every := resolveEvery
		if c.own.core.Phase() == birth.Member {
			every = resolveEverySlow
		}
		r.busy, r.next = true, now+every+time.Duration(c.word()%uint64(every/4))
		host := r.host
		c.help(func() {
			ctx, cancel := context.WithTimeout(c.ctx, resolveWithin)
			defer cancel()
			hosts, err := c.cfg.Resolve(ctx, host)
			c.in.post(func() { c.resolved(i, now, hosts, err) })
		})
	}
	return next
}

// resolved takes what a lookup found. A name that does not exist yet is as good as one with no addresses; a lookup that failed says
// nothing about who is there, so it blocks birth, and the addresses that were known stay worth asking.
func (c *Cluster) resolved(i int, asked time.Duration, hosts []string, err error) {
	r := &c.own.join[i]
	r.busy = false
	c.own.moved = true
	var dns *net.DNSError
	if err != nil && !(errors.As(err, &dns) && dns.IsNotFound) {
		r.entry.Failed = err.Error()
		return
	}
	r.entry.Addrs, r.entry.Failed, r.entry.Resolved = nil, "", asked
	for _, h := range hosts {
		r.entry.Addrs = append(r.entry.Addrs, net.JoinHostPort(h, r.port))
	}
}

// places tells the core whom it may ask, if that has changed.
func (c *Cluster) places() {
	o := &c.own
	if !o.moved {
		return
	}
	o.moved = false
	entries := make([]birth.Entry, 0, len(o.join))
	for i := range o.join {
		entries = append(entries, o.join[i].entry)
	}
	seen := make([]string, 0, len(o.peers))
	for _, name := range sortedNames(o.peers) {
		seen = append(seen, o.peers[name].meta.Addr)
	}
	o.core.Places(entries, seen)
}
