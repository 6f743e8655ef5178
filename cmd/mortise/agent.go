package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
)

const (
	doorWithin  = 5 * time.Second
	leaveWithin = 10 * time.Second
	failedLook  = time.Second
)

type agentOptions struct{ listen, tokenFile, observe, consoles string }

func agentFlags(o *agentOptions, fs *flag.FlagSet) {
	standard := os.Getenv(prefix + "_LISTEN")
	if standard == "" {
		standard = "127.0.0.1:7948"
	}
	fs.StringVar(&o.tokenFile, "token-file", os.Getenv(agentToken+"_FILE"),
		"a file with tokens, one a line: every request shows one, or a derived secret; "+agentToken+"_FILE, or one token "+
			"in "+agentToken)
	fs.StringVar(&o.listen, "listen", standard,
		"where programs ask, with a derived secret of their own or with the agent's rights: a loopback address, "+
			"or unix:/path of a socket; "+prefix+"_LISTEN")
	fs.StringVar(&o.observe, "observe", os.Getenv(prefix+"_OBSERVE"),
		"another address with the metrics and the page only: "+
			"as -listen, or with -token-file any address; "+prefix+"_OBSERVE")
	fs.StringVar(&o.consoles, "consoles", os.Getenv(prefix+"_CONSOLES"),
		"where the pages of the other agents are, for the links between them: a URL with {host}, the host of an agent's "+
			"address, or {name}; "+prefix+"_CONSOLES")
}

func agent(ctx context.Context, c *call, o agentOptions) error {
	if len(c.words) > 0 {
		return usageError("agent takes no words, only flags: " + strings.Join(c.words, " "))
	}
	allowed, err := c.readTokens(o.tokenFile, os.Getenv(agentToken))
	if err != nil {
		return usageError(err.Error())
	}
	links, err := linksTo(o.consoles)
	if err != nil {
		return usageError(err.Error())
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	given := config // c.secure may add a random secret, which has no derived secrets
	c.secure(&config)
	listeners, err := o.listeners(allowed != nil)
	if err != nil {
		return usageError(err.Error())
	}
	h := hosting{config: config, given: given, listeners: listeners, tokens: allowed,
		links: links, leave: (*mortise.Node).Leave}
	return h.run(ctx, func(node *mortise.Node, served <-chan error) error {
		if err := c.tellStart(node, listeners); err != nil {
			return err
		}
		return c.serve(ctx, node, served)
	})
}

// hosting is an instance with the HTTP API and the page.
type hosting struct {
	config    mortise.Config // hooks are added
	given     mortise.Config // for the guests of programs with derived secrets
	listeners []net.Listener // closed at the end; the second one is for metrics and the page only
	tokens    tokens
	links     func(mortise.Member) string
	try       string                  // the directory of the simulation page; empty means none
	changed   func(mortise.NodeEvent) // called as Hooks.Node; nil means none
	leave     func(*mortise.Node, context.Context) error
}

// run starts the instance, serves the API until do returns, and ends both. The channel of do
// receives the error of a listener that has failed.
func (h hosting) run(ctx context.Context, do func(node *mortise.Node, served <-chan error) error) error {
	meter, history := newMeter(), console.NewHistory()
	hooks := meter.hooks()
	if h.changed != nil {
		hooks.Node = func(e mortise.NodeEvent) {
			meter.node(e)
			h.changed(e)
		}
	}
	h.config.Hooks = history.HooksWith(hooks)
	node, err := mortise.Start(ctx, h.config)
	if err != nil {
		for _, l := range h.listeners {
			err = errors.Join(err, l.Close())
		}
		return usageError(err.Error())
	}
	clients := newLeases(node)
	guests := newPrograms(clients.ctx, h.given, node.Status().Address)
	conns := connLimit()
	d := &door{node: node, leases: clients, programs: guests, tokens: h.tokens, meter: meter, entry: newEntry(conns),
		page: console.Options{History: history, Console: h.links}, try: h.try}
	served := make(chan error, len(h.listeners))
	var servers []*http.Server
	for i, l := range h.listeners {
		handler := d.handler(isLocal(l))
		if i > 0 {
			handler, conns = d.observer(isLocal(l), h.tokens != nil), min(conns, maxWatchers)
		}
		server := newServer(handler)
		servers = append(servers, server)
		go func(conns int) { served <- server.Serve(newGate(l, conns)) }(conns)
	}
	err = do(node, served)
	clients.close()
	for _, server := range servers {
		err = errors.Join(err, within(doorWithin, server.Shutdown))
	}
	guests.close() // before the node leaves, so that the guests can end their sessions
	return errors.Join(err, within(leaveWithin, func(ctx context.Context) error { return h.leave(node, ctx) }))
}

// secure protects the instance's port from other users of this machine if the configuration does
// not. It gives an agent without peers a random secret. If the agent has peers, secure only prints
// a warning, because agents need a common secret to find each other.
func (c *call) secure(config *mortise.Config) {
	if config.Secret != "" || config.TLSFiles != (mortise.TLSFiles{}) || config.Insecure {
		return
	}
	if len(config.Join) == 0 {
		config.Secret = rand.Text() + rand.Text() // 256 bits
		return
	}
	c.warn("agent", errors.New("there is no secret: every user of this machine can take and break locks through the "+
		"port of "+
		"this instance; give all agents the same -secret-file"))
}

type startShown struct {
	Name, Address, Listen string
	Observe               string `json:",omitempty"`
}

func (c *call) tellStart(node *mortise.Node, at []net.Listener) error {
	s := node.Status()
	where := []string{"", ""}
	for i, l := range at {
		if where[i] = l.Addr().String(); isLocal(l) {
			where[i] = "unix:" + where[i]
		}
	}
	if c.json {
		return c.show(startShown{s.Name, s.Address, where[0], where[1]})
	}
	own := cmp.Or(s.Address, "no address of its own")
	if where[1] != "" {
		where[0] += "; metrics and the page are at " + where[1] + " too"
	}
	return c.printf("%s is an instance at %s; programs send requests to %s\n", s.Name, own, where[0])
}

func (c *call) serve(ctx context.Context, node *mortise.Node, served <-chan error) error {
	look := time.NewTicker(failedLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case <-look.C:
			if err := node.Err(); err != nil {
				return err
			}
		}
	}
}

func within(limit time.Duration, call func(context.Context) error) error {
	ctx, done := context.WithTimeout(context.Background(), limit)
	defer done()
	return call(ctx)
}

func (o agentOptions) listeners(tokens bool) ([]net.Listener, error) {
	door, err := listenFor(o.listen)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	if o.observe == "" {
		return []net.Listener{door}, nil
	}
	var observe net.Listener
	if tokens && !strings.HasPrefix(o.observe, "unix:") {
		observe, err = net.Listen("tcp", o.observe)
	} else {
		observe, err = listenFor(o.observe)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("-observe: %w", err), door.Close())
	}
	return []net.Listener{door, observe}, nil
}

func isLocal(l net.Listener) bool { return l.Addr().Network() == "unix" }

// listenFor opens the socket of the HTTP API: on a loopback address, or as a file that only this
// user may open.
func listenFor(where string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(where, "unix:"); ok {
		return listenUnix(path)
	}
	host, _, err := net.SplitHostPort(where)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%q is neither a loopback address with a port nor unix:/path: "+
			"every program that reaches it would have the agent's rights", where)
	}
	return net.Listen("tcp", where)
}

// listenUnix opens a socket in the file system. It replaces a socket on which no process listens,
// but no other file.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s exists and is not a socket", path)
		}
		if conn, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("another process listens on %s", path), conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	defer private()()
	return net.Listen("unix", path)
}
