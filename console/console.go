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

// Node is the part of *mortise.Node that the handler uses.
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

// Options are the settings of a handler.
type Options struct {
	// MayForce reports whether the sender of a request may end a hold by force. It is called for
	// every request for the page, to decide whether the form is shown, and again before a hold is
	// ended. It must be safe for concurrent use. Nil means that no hold can be ended by force.
	MayForce func(*http.Request) bool

	// Hosts are the host names, without a port, that are accepted in the Host header of a request
	// for the page or its JSON. IP addresses and localhost are always accepted. A request with any
	// other host is rejected, because it may come from a page of another site whose name resolves
	// to this address (DNS rebinding). Such a page could read everything, and end holds if MayForce
	// checks only addresses. The entry "*" accepts every name. Use it only if you check the Host
	// header yourself, or if requests must authenticate by a header.
	Hosts []string

	// Long is the age at which the page calls a hold long if requests wait for it. The page also
	// assumes that a hold older than Long and a waiting request of the same instance belong to the
	// same work. Zero or less means 30 s.
	Long time.Duration

	// History is the memory of the last hour, whose hooks are part of Config.Hooks of the node. Nil
	// means that the page does not show the last hour.
	History *History

	// Console returns the URL of the console of another instance, for the links between consoles. It
	// is called with each instance that the page lists, for example to take the host from
	// Member.Address. It must be safe for concurrent use. If it returns "", or a URL that is neither
	// http nor https nor relative, there is no link to that instance. Nil means no links.
	Console func(mortise.Member) string
}

type handler struct {
	node    Node
	options Options
	answers answers
	page    *template.Template
	program string // as in instance
	policy  string // Content-Security-Policy
	origin  *http.CrossOriginProtection
}

// New returns an HTTP handler that shows the state of node. It is safe for concurrent use and need
// not be closed.
func New(node Node, options Options) http.Handler {
	if options.Long <= 0 {
		options.Long = 30 * time.Second
	}
	if options.History != nil {
		status := node.Status
		options.History.status.Store(&status)
	}
	h := &handler{node: node, options: options, origin: http.NewCrossOriginProtection()}
	h.answers.turn = make(chan struct{}, 1)
	h.page, h.policy = parsePage()
	h.program = program()
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// With the policy no-referrer, a browser would send the form with a null origin.
	w.Header().Set("Referrer-Policy", "same-origin")
	w.Header().Set("X-Frame-Options", "DENY")
	// servePage replaces this policy.
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
		http.Error(w, "this path accepts only "+methods, http.StatusMethodNotAllowed)
		return
	}
	answer(w, r)
}
