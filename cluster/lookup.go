package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// Times and bounds of one lookup.
const (
	resolveWithin  = 2 * time.Second // then its context ends
	resolveOverrun = time.Second     // how long it may go on after that before it is complained about, and before Close goes on without it
	resolveAtATime = 16              // hosts of one list
)

// found is what one lookup of an entry has found.
type found struct {
	err   error  // the list itself could not be had
	stack []byte // of the panic that was the reason
	lines []foundLine
}

// foundLine is one host:port of an entry, with the addresses of the host.
type foundLine struct {
	host, port string
	addrs      []string // IP addresses
	err        error    // they could not be looked up
}

// errExited is what a lookup has found whose goroutine has ended without returning.
var errExited = errors.New("it has ended its goroutine instead of returning")

// lookup looks one entry up beside the owner, on a goroutine of its own which posts what it has found. It has two seconds. A function
// of the user, or a file on a dead disk, may take no notice of that: then the entry has failed until it returns, nobody starts another
// beside it, and Close does not wait for it.
func (c *Cluster) lookup(i int, asked time.Duration) {
	list := c.own.join[i].list
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, resolveWithin)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			got := found{err: errExited}
			defer func() {
				c.in.post(func() { c.resolved(i, asked, got) })
				close(ended)
			}()
			got = c.cfg.look(ctx, list)
		}()
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		late := time.NewTimer(resolveOverrun)
		defer late.Stop()
		select {
		case <-ended:
		case <-late.C:
			c.in.post(func() { c.overrun(i, asked) })
		}
	})
}

// look gets the list of an entry and then the addresses of every host on it.
func (cfg *Config) look(ctx context.Context, list func(context.Context) ([]string, error)) (got found) {
	lines, err := guarded(ctx, list, &got)
	if err != nil {
		got.err = err
		return got
	}
	got.lines = make([]foundLine, len(lines))
	places := make(chan struct{}, resolveAtATime)
	var all sync.WaitGroup
	for i, line := range lines {
		l := &got.lines[i]
		l.host, l.port, _ = net.SplitHostPort(line) // checked by whoever made the list
		if ip, err := netip.ParseAddr(l.host); err == nil {
			l.addrs = []string{ip.Unmap().String()}
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			l.addrs, l.err = cfg.Resolve(ctx, l.host)
		})
	}
	all.Wait()
	return got
}

// guarded calls list, which may be a function of the user: its panic is an error like any other, told with its stack.
func guarded(ctx context.Context, list func(context.Context) ([]string, error), got *found) (lines []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err, got.stack = fmt.Errorf("it panicked: %v", p), debug.Stack()
		}
	}()
	return list(ctx)
}

// lister returns what makes the list of an entry.
func (cfg *Config) lister(entry string) (kind form, list func(context.Context) ([]string, error)) {
	kind, what, _ := parseJoin(entry) // Config.check has found no fault with it
	switch kind {
	case formService:
		return kind, func(ctx context.Context) ([]string, error) {
			lines, err := cfg.Services(ctx, what)
			if err != nil {
				return nil, err
			}
			return checkList(lines)
		}
	case formFile:
		return kind, (&listFile{path: what}).list
	}
	return kind, func(context.Context) ([]string, error) { return []string{what}, nil }
}

// askFunc is the list of Config.JoinFunc.
func (cfg *Config) askFunc(ctx context.Context) ([]string, error) {
	lines, err := cfg.JoinFunc(ctx)
	if err != nil {
		return nil, err
	}
	return checkList(lines)
}

// systemServices is the system's resolver for SRV records. A record whose target is the root says that there is no such service.
func systemServices(ctx context.Context, name string) ([]string, error) {
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err // also if some records are good: the others may be those that count
	}
	var lines []string
	for _, r := range records {
		if r.Target != "." {
			lines = append(lines, net.JoinHostPort(r.Target, strconv.Itoa(int(r.Port))))
		}
	}
	return lines, nil
}

// missing reports whether a lookup has failed because there is nothing under the name, which is an answer.
func missing(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// overrun says that a lookup has not ended though its context has.
func (c *Cluster) overrun(i int, asked time.Duration) {
	if r := &c.own.join[i]; r.busy && r.asked == asked {
		r.entry.Failed = "it has not returned, though its context ended " + resolveOverrun.String() + " ago"
		c.own.moved = true
	}
}

// hasLeader reports whether this instance is a member of a group with a leader: then Join is needed only to find lost peers.
func (c *Cluster) hasLeader() bool {
	return c.own.core.Phase() == founding.Member && c.own.core.HasLeader()
}
