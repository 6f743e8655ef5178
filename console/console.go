package console

import (
	"context"
	"html/template"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// Node is what the handler asks; *mortise.Node is one.
type Node interface {
	Err() error
	Status() mortise.Status
	Ready(ctx context.Context) error
	Health(ctx context.Context) (mortise.Health, error)
	List(ctx context.Context, prefix string) iter.Seq2[mortise.KeyInfo, error]
	Peek(ctx context.Context, key string) (mortise.KeyInfo, error)
	Audit(ctx context.Context) ([]mortise.Event, error)
	Sessions(ctx context.Context) ([]mortise.SessionInfo, error)
	Members(ctx context.Context, after string) iter.Seq2[mortise.Member, error]
	ForceUnlock(ctx context.Context, key string, token mortise.Token, reason string) (ended bool, err error)
}

// Options says what is not the same for all. The zero value is fine: a handler that only reads.
type Options struct {
	// MayForce says whether whoever sends a request may end a hold by force. It is asked for every
	// request for the page, to decide whether the form is shown, and again before anything is done;
	// it may be called by several goroutines at once. Nil: nobody may, and there is no form.
	MayForce func(*http.Request) bool

	// Hosts are the names, without a port, by which browsers and proxies ask for the page and its
	// JSON: what the Host header may say besides IP addresses and localhost. A request that names
	// any other host is refused, since it may come from a page of another site whose name leads
	// here (DNS rebinding), and such a page may read all and send the form where MayForce goes by
	// addresses alone. "*" allows every name: only for a handler behind your own check of the Host
	// header, or one that asks for credentials in a header.
	Hosts []string

	// Long is how old a hold is, while others wait for it, when the page calls it long, and when it
	// is thought that its instance does not work on anything else meanwhile. 0 or less: 30 s.
	Long time.Duration
}

// handler serves one node.
type handler struct {
	node    Node
	options Options
	looks   looks
	page    *template.Template
	policy  string // Content-Security-Policy
	origin  *http.CrossOriginProtection
}

// New returns the handler of a node. It can be mounted at any path, with http.StripPrefix. It is
// safe for concurrent use and needs no closing.
func New(node Node, options Options) http.Handler {
	if options.Long <= 0 {
		options.Long = 30 * time.Second
	}
	h := &handler{node: node, options: options, origin: http.NewCrossOriginProtection()}
	h.looks.turn = make(chan struct{}, 1)
	h.page, h.policy = parsePage()
	return h
}

// ServeHTTP sends a request to what answers it.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// with no-referrer a browser would send a form as if it came from elsewhere
	w.Header().Set("Referrer-Policy", "same-origin")
	w.Header().Set("X-Frame-Options", "DENY")
	// The page has a policy of its own.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	answer, methods, probed := http.HandlerFunc(http.NotFound), "GET, HEAD", false
	switch strings.Trim(r.URL.Path, "/") {
	case "":
		answer = h.servePage
		if h.options.MayForce != nil {
			methods = "GET, HEAD, POST"
		}
	case "status.json":
		answer = h.serveJSON
	case "livez":
		answer, probed = h.serveLive, true
	case "readyz":
		answer, probed = h.serveReady, true
	}
	if !probed && !h.named(r) {
		misnamed(w, r)
		return
	}
	if !slices.Contains(strings.Split(methods, ", "), r.Method) {
		w.Header().Set("Allow", methods)
		http.Error(w, "this is answered to "+methods, http.StatusMethodNotAllowed)
		return
	}
	answer(w, r)
}
