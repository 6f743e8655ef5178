package discovery

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// Times of resolving Join. Names are hints that change: they are looked up for ever, faster while
// there is no leader, since the founding of a group, and finding one whose instances have all
// moved, depend on them. Each pause is up to a quarter longer at random, so that a thousand
// instances that were started together do not ask DNS together for ever.
const (
	resolveEvery     = time.Second
	resolveEverySlow = 10 * time.Second
	// in place of resolveEvery: behind a function there is often a service that counts calls
	resolveEveryFunc = 2 * time.Second
	always           = time.Duration(1) << 62 // resolved for ever: an IP address
	idle             = time.Hour              // until the next look if nothing is to be looked up
	loudEvery        = time.Minute            // between two lines about the panic of one function
)

// Join is what the entries of Config lead to. One goroutine owns it and calls its methods; it
// carries out the attempts that Due returns on other goroutines, and hands what they find to Take.
//
// Times are on a scale of the caller's own, which begins at zero and never goes back.
type Join struct {
	cfg     *Config
	entries []resolving
}

// resolving is one entry, or Config.Func, and what is known about it.
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

// New returns a Join in which every entry is due, but those that are IP addresses already.
func New(config Config) *Join {
	cfg := config.withDefaults()
	j := &Join{cfg: cfg}
	for _, name := range cfg.Entries {
		j.entries = append(j.entries, newResolving(cfg, name))
	}
	if cfg.Func != nil {
		entry := founding.Entry{Name: joinFunc, Resolved: -always}
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

// Entries returns what every entry leads to now, in the order of Config with Func last. The slices
// in them are never changed afterwards.
func (j *Join) Entries() []founding.Entry {
	all := make([]founding.Entry, 0, len(j.entries))
	for i := range j.entries {
		all = append(all, j.entries[i].entry)
	}
	return all
}

// pauseAfter is how long an entry is left alone between the beginnings of two lookups, without the
// random part.
func (r *resolving) pauseAfter(led bool) time.Duration {
	switch {
	case led:
		return resolveEverySlow
	case r.kind == formFunc:
		return resolveEveryFunc
	}
	return resolveEvery
}

// Due returns the lookups that are to be begun now, and when to call it again at the latest. An
// attempt that was returned is under way until Take has its result: no other begins beside it. led
// says that this instance belongs to a group that has a leader, so that the entries are looked up
// less often; as soon as it is false they are due as often as without one.
func (j *Join) Due(now time.Duration, led bool, random func() uint64) (due []Attempt, next time.Duration) {
	next = now + idle
	for i := range j.entries {
		r := &j.entries[i]
		if r.busy || r.next == always {
			continue
		}
		pause := r.pauseAfter(led)
		r.next = min(r.next, now+pause+pause/4) // what was planned under a leader does not wait that long without one
		if r.next > now {
			next = min(next, r.next)
			continue
		}
		r.busy, r.asked, r.next = true, now, now+pause+time.Duration(random()%uint64(pause/4))
		due = append(due, Attempt{cfg: j.cfg, list: r.list, entry: i, asked: now})
	}
	return due, next
}

// Take takes what an attempt has found, and returns the addresses that the entry leads to now and
// did not lead to before, without Self. A name that does not exist yet is as good as one with no
// addresses. A lookup that failed says nothing about which instances are there: the entry says why
// in Failed, and keeps the addresses that were known.
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
	addrs, failed := r.take(got.found.lines)
	if err := checkMany(len(addrs)); err != nil {
		r.entry.Failed = err.Error()
		return nil
	}
	r.entry.Addrs, r.entry.Failed = addrs, failed
	if failed == "" {
		r.entry.Resolved = got.asked
	}
	for _, addr := range addrs {
		if addr != j.cfg.Self && !slices.Contains(before, addr) {
			appeared = append(appeared, addr)
		}
	}
	return appeared
}

// overrun notes that a lookup has not ended though its context has.
func (r *resolving) overrun(asked time.Duration) {
	if r.busy && r.asked == asked {
		r.entry.Failed = "it has not returned, though its context ended " + resolveOverrun.String() + " ago"
	}
}

// take makes the addresses of an entry from what was found: one host that could not be looked up
// keeps the addresses that it had.
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

// panicked tells the panic of a user's function, with its stack, once in a while.
func (j *Join) panicked(now time.Duration, r *resolving, got found) {
	if r.loud == 0 || now-r.loud >= loudEvery {
		r.loud = now
		j.cfg.Logger.Error(r.entry.Name+" panicked; it is called again", "panic", clipped(got.err).Error(), "stack",
			string(got.stack))
	}
}
