package httpleader

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// Node is the part of *mortise.Node that a ToLeader uses. It must be safe for concurrent use.
type Node interface {
	Peek(ctx context.Context, key string) (mortise.KeyInfo, error)
	Status() mortise.Status
}

// Header marks a request that an instance has forwarded. Its value is the token of the leader to
// which it was sent.
const Header = "Mortise-Leader"

// ToLeader sends each request to the instance that holds a key, which is the leader if the key is
// the name of an election. If that is not possible, it answers, in plain text:
//
//	502 Bad Gateway             the leader's value is no address, or the connection broke after the
//	                            request was sent, so that the leader may have handled it
//	503 Service Unavailable     there is no leader, it was not found in time or cannot be reached,
//	                            MaxForwards requests are on their way to it already, or the request
//	                            was forwarded to this instance, which does not lead
//
// 503 has the header Retry-After, and means that no handler has run. The answer does not contain
// the reason; Failed gets it.
type ToLeader struct {
	Node Node // required

	// Key returns the name of the election, or the key. If it returns "", the request is handled by
	// the instance that received it. Required.
	Key func(*http.Request) string

	// Within limits how long it takes to find the leader. Zero or less means 2 s.
	Within time.Duration

	// MaxForwards limits the requests of one Wrap that are forwarded to one leader at a time. Zero or
	// less means 100.
	MaxForwards int

	// Transport sends the requests. Nil means http.DefaultTransport, which uses the proxy of the
	// environment. If the leader's value is an https URL, Transport verifies that the certificate of
	// the leader is valid for the host in that URL.
	Transport http.RoundTripper

	// RetryAfter is the time in the header Retry-After, in full seconds. Zero means 1 s.
	RetryAfter time.Duration

	// Failed is called with the reason of each answer above, and with an error if the answer of the
	// leader broke off. Nil means that the errors are dropped.
	Failed func(*http.Request, error)
}

// The reasons that are no errors of a Node or a Transport.
var (
	errNone      = errors.New("no instance holds it")
	errForwarded = errors.New("the request was forwarded to this instance, which does not hold it")
	errFull      = errors.New("too many requests are on their way to its holder")
	errAddress   = errors.New("the value of its holder is no host and port, and no http or https URL")
)

// Wrap returns a handler that calls next on the leader.
func (l ToLeader) Wrap(next http.Handler) http.Handler {
	f := &forwarder{ToLeader: l, next: next, forwards: map[string]int{}}
	return http.HandlerFunc(f.serve)
}

// forwarder is the handler of one Wrap.
type forwarder struct {
	ToLeader
	next http.Handler

	mu       sync.Mutex     // guards forwards
	forwards map[string]int // the number of requests on their way to an address; never zero
}

func (f *forwarder) serve(w http.ResponseWriter, r *http.Request) {
	key := f.Key(r)
	if key == "" {
		f.next.ServeHTTP(w, r)
		return
	}
	leader, err := f.leader(r.Context(), key)
	switch {
	case err != nil:
		f.refuse(w, r, http.StatusServiceUnavailable, key, err)
	case slices.Contains(f.Node.Status().Sessions, leader.Session):
		f.next.ServeHTTP(w, r.WithContext(mortise.ContextWithToken(r.Context(), leader.Token)))
	case r.Header.Get(Header) != "":
		f.refuse(w, r, http.StatusServiceUnavailable, key, errForwarded)
	default:
		f.forward(w, r, key, leader)
	}
}

// leader returns the first holder of a key.
func (f *forwarder) leader(ctx context.Context, key string) (mortise.Standing, error) {
	within := f.Within
	if within <= 0 {
		within = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	info, err := f.Node.Peek(ctx, key)
	if err != nil {
		return mortise.Standing{}, err
	}
	// During the grace of a new group, the key has a queue but no holder.
	if len(info.Queue) == 0 || info.Queue[0].Token == 0 {
		return mortise.Standing{}, errNone
	}
	return info.Queue[0], nil
}

func (f *forwarder) forward(w http.ResponseWriter, r *http.Request, key string, leader mortise.Standing) {
	target, err := address(leader.Value)
	if err != nil {
		f.refuse(w, r, http.StatusBadGateway, key, err)
		return
	}
	if !f.begin(target.Host) {
		f.refuse(w, r, http.StatusServiceUnavailable, key, errFull)
		return
	}
	defer f.end(target.Host)
	proxy := httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { rewrite(p, target, leader.Token) },
		Transport:     f.Transport,
		FlushInterval: -1, // at once
		ErrorLog:      log.New(lines(func(text string) { f.report(r, key, errors.New(text)) }), "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status := http.StatusBadGateway
			if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "dial" {
				status = http.StatusServiceUnavailable // so nothing was sent
			}
			f.refuse(w, r, status, key, err)
		},
	}
	proxy.ServeHTTP(w, r)
}

// lines passes each line of a log to a function.
type lines func(text string)

func (l lines) Write(line []byte) (int, error) {
	l(strings.TrimSpace(string(line)))
	return len(line), nil
}

// address returns the URL of a server from the value of its instance.
func address(value string) (*url.URL, error) {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	target, err := url.Parse(value)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, errAddress
	}
	return target, nil
}

// rewrite makes the request that is sent to target. The leader is to see what this instance has
// received, and where from.
func rewrite(p *httputil.ProxyRequest, target *url.URL, token mortise.Token) {
	p.SetURL(target)
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, is := p.In.Header[name]; is { // of a proxy before this instance
			p.Out.Header[name] = values
		}
	}
	p.Out.Header.Set(Header, fence.FormatToken(token))
}

// begin counts a request to host, unless there are too many.
func (f *forwarder) begin(host string) bool {
	limit := f.MaxForwards
	if limit <= 0 {
		limit = 100
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forwards[host] >= limit {
		return false
	}
	f.forwards[host]++
	return true
}

func (f *forwarder) end(host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forwards[host]--; f.forwards[host] == 0 {
		delete(f.forwards, host)
	}
}

func (f *forwarder) refuse(w http.ResponseWriter, r *http.Request, status int, key string, reason error) {
	f.report(r, key, reason)
	text := "httpleader: the leader cannot be reached now"
	if status == http.StatusBadGateway {
		text = "httpleader: the answer of the leader is not known"
	} else {
		seconds := int64(f.RetryAfter / time.Second)
		if f.RetryAfter%time.Second > 0 || seconds < 1 {
			seconds = max(seconds, 0) + 1
		}
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}

func (f *forwarder) report(r *http.Request, key string, reason error) {
	if f.Failed != nil {
		f.Failed(r, fmt.Errorf("httpleader: %q: %w", key, reason))
	}
}
