package discovery

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// Lookups are more frequent without a leader, since they delay founding and joining. Each pause has
// a random part, so that a thousand instances that start together do not query DNS together.
const (
	resolveEvery     = time.Second
	resolveEverySlow = 10 * time.Second
	// longer than resolveEvery, because functions often call a service with a rate limit
	resolveEveryFunc = 2 * time.Second
	always           = time.Duration(1) << 62 // pause for an IP address, which needs no further lookup
	idle             = time.Hour              // time until the next call of Due if no lookup is needed
	loudEvery        = time.Minute            // time between two log lines about panics of one function
)

// Join holds the addresses that the entries of Config lead to. One goroutine owns it and calls its
// methods. The caller's clock, which gives all times, begins at zero and never goes back.
type Join struct {
	cfg     *Config
	entries []resolving
}

type resolving struct {
	entry founding.Entry
	kind  form
	list  func(context.Context) ([]string, error) // returns the host:port lines of the entry
	known map[string][]string                     // last known addresses of each host of the current list
	none  []string                                // lines of the list whose host has no address
	busy  bool
	asked time.Duration // when the current or last lookup began
	next  time.Duration
	loud  time.Duration // when a panic was last logged
	had   time.Duration // when the entry last led to an address without a failure; zero means never
}

// New returns a Join in which a lookup of every entry is due, except for IP addresses.
func New(config Config) *Join {
	cfg := config.withDefaults()
	j := &Join{cfg: cfg}
	for _, name := range cfg.Entries {
		j.entries = append(j.entries, newResolving(cfg, name))
	}
	if cfg.Func != nil {
		entry := founding.Entry{Name: founding.JoinFunc, Resolved: -always}
		j.entries = append(j.entries, resolving{entry: entry, kind: formFunc, list: cfg.askFunc})
	}
	return j
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

// Entries returns every entry with its current addresses, in the order of Config with Func last.
// The returned slices are never changed.
func (j *Join) Entries() []founding.Entry {
	all := make([]founding.Entry, 0, len(j.entries))
	for i := range j.entries {
		all = append(all, j.entries[i].entry)
	}
	return all
}

func (r *resolving) pauseAfter(led bool) time.Duration {
	switch {
	case led:
		return resolveEverySlow
	case r.kind == formFunc:
		return resolveEveryFunc
	}
	return resolveEvery
}

// Due returns the lookups to start now, and when to call Due again at the latest. It returns at
// most one attempt for an entry until Take has received the result. led is set if this instance
// belongs to a group that has a leader; lookups are then less frequent.
func (j *Join) Due(now time.Duration, led bool, random func() uint64) (due []Attempt, next time.Duration) {
	next = now + idle
	for i := range j.entries {
		r := &j.entries[i]
		if r.busy || r.next == always {
			continue
		}
		pause := r.pauseAfter(led)
		r.next = min(r.next, now+pause+pause/4) // earlier if the lookup was planned while there was a leader
		if r.next > now {
			next = min(next, r.next)
			continue
		}
		r.busy, r.asked, r.next = true, now, now+pause+time.Duration(random()%uint64(pause/4))
		due = append(due, Attempt{cfg: j.cfg, list: r.list, entry: i, asked: now})
	}
	return due, next
}

// Take records the result of an attempt. It returns the addresses, without Self, that the entry
// leads to now and did not lead to before. After a failed lookup the entry keeps its addresses, and
// Entry.Failed is the reason.
func (j *Join) Take(now time.Duration, got Result) (appeared []string) {
	r := &j.entries[got.entry]
	if got.late {
		r.overrun(got.asked)
		return nil
	}
	r.busy = false
	if got.found.stack != nil {
		j.panicked(now, r, got.found)
	}
	if err := got.found.err; err != nil && !missing(err) {
		r.entry.Failed = clipped(err).Error()
		return nil
	}
	before := r.entry.Addrs
	addrs, failed := r.answer(got.found.lines)
	if err := checkMany(len(addrs)); err != nil {
		r.entry.Failed = err.Error()
		return nil
	}
	r.entry.Addrs, r.entry.Failed = addrs, failed
	if failed == "" {
		r.entry.Resolved = got.asked
		if len(addrs) > 0 {
			r.had = max(now, 1)
		}
	}
	for _, addr := range addrs {
		if addr != j.cfg.Self && !slices.Contains(before, addr) {
			appeared = append(appeared, addr)
		}
	}
	return appeared
}

// overrun records that a lookup has not ended although its context has ended.
func (r *resolving) overrun(asked time.Duration) {
	if r.busy && r.asked == asked {
		r.entry.Failed = "it has not returned, though its context ended " + resolveOverrun.String() + " ago"
	}
}

// answer returns the addresses of an entry. A host whose lookup failed keeps its earlier addresses.
func (r *resolving) answer(lines []foundLine) (addrs []string, failed string) {
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
	slices.Sort(addrs) // DNS servers rotate the order, which is not a change
	return slices.Compact(addrs), failed
}

func (j *Join) panicked(now time.Duration, r *resolving, got found) {
	if r.loud == 0 || now-r.loud >= loudEvery {
		r.loud = now
		j.cfg.Logger.Error(r.entry.Name+" panicked; it is called again", "panic", clipped(got.err).Error(), "stack",
			string(got.stack))
	}
}
