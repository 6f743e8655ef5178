package discovery

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
)

const (
	resolveWithin = 2 * time.Second // time until the context of the lookup ends
	// resolveOverrun is how long a lookup may continue after its context has ended. After this time
	// the entry counts as failed, and Close does not wait for the lookup.
	resolveOverrun = time.Second
	resolveAtATime = 16 // hosts of one list that are looked up at the same time
)

type found struct {
	err   error  // error of the list
	stack []byte // set if the list function panicked
	lines []foundLine
}

// foundLine is one host:port of an entry, with the addresses of the host.
type foundLine struct {
	host, port string
	addrs      []string // IP addresses
	err        error
}

// errExited is the error of a function that calls runtime.Goexit.
var errExited = errors.New("it has ended its goroutine instead of returning")

// Attempt is one lookup of one entry. It may be run once, on any goroutine.
type Attempt struct {
	cfg   *Config
	list  func(context.Context) ([]string, error)
	entry int
	asked time.Duration
}

// Result is the result of an Attempt, for Take.
type Result struct {
	entry int
	asked time.Duration
	late  bool // the lookup has overrun its time; another Result follows when it returns
	found found
}

// Run runs the lookup on a goroutine of its own, which calls the function tell with the result. Run
// returns when that goroutine has ended. The lookup's context ends after two seconds or with ctx.
// If the lookup has not ended a second later, Run itself calls tell with a Result that says so, and
// returns. The goroutine still calls tell when the lookup ends. So there may be two calls of tell,
// on different goroutines. They must not block.
func (a Attempt) Run(ctx context.Context, tell func(Result)) {
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		got := Result{entry: a.entry, asked: a.asked, found: found{err: errExited}}
		defer func() {
			tell(got)
			close(ended)
		}()
		got.found = a.cfg.look(ctx, a.list)
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
		tell(Result{entry: a.entry, asked: a.asked, late: true})
	}
}

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
		l.host, l.port, _ = net.SplitHostPort(line) // checked when the list was made
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

// guarded runs the given function, which may come from the user. It turns a panic into an error and
// stores the stack in got.
func guarded(ctx context.Context, list func(context.Context) ([]string, error), got *found) (lines []string,
	err error) {
	defer func() {
		if p := recover(); p != nil {
			err, got.stack = fmt.Errorf("it panicked: %v", p), debug.Stack()
		}
	}()
	return list(ctx)
}

// lister returns the form of an entry and the function that lists its host:port lines.
func (cfg *Config) lister(entry string) (kind form, list func(context.Context) ([]string, error)) {
	kind, what, _ := parseJoin(entry) // Check has accepted it
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

func (cfg *Config) askFunc(ctx context.Context) ([]string, error) {
	lines, err := cfg.Func(ctx)
	if err != nil {
		return nil, err
	}
	return checkList(lines)
}

// systemServices looks up SRV records with the system's resolver. A record with the target "."
// means that the service does not exist.
func systemServices(ctx context.Context, name string) ([]string, error) {
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err // the records returned with an error may be incomplete
	}
	var lines []string
	for _, r := range records {
		if r.Target != "." {
			lines = append(lines, net.JoinHostPort(r.Target, strconv.Itoa(int(r.Port))))
		}
	}
	return lines, nil
}

// missing reports whether a lookup has failed because the name does not exist. This counts as an
// empty result.
func missing(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
