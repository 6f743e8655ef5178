package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
)

// This file serves the page of package console, without forced unlocks, and the metrics for
// Prometheus.

const (
	pagePath = "/console/"
	tofuPath = "/v1/tofu"
)

func isPage(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, pagePath) }

// takesBasic reports whether a token may be the password of Basic authentication. Browsers and
// OpenTofu have a password as the usual way to send a secret.
func takesBasic(r *http.Request) bool { return isPage(r) || r.URL.Path == tofuPath }

// show adds the metrics and the page to mux. They show the whole group, so programs with a derived
// secret cannot read them.
func (d *door) show(mux *http.ServeMux, options console.Options) {
	page := http.StripPrefix(strings.TrimSuffix(pagePath, "/"), console.New(d.node, options))
	mux.Handle("GET "+pagePath, forAgent(page))
	mux.Handle("GET /metrics", forAgent(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		d.meter.write(w, d.node.Status())
	})))
}

func forAgent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if programOf(r) != nil {
			refuse(w, fmt.Errorf("%w: it cannot see the agent's metrics or its page", errNotForPrograms))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// observer returns the handler of -observe: the metrics, the page, /healthz and /readyz. If the
// agent has tokens, every request must contain a token, and the Host header may contain any name.
func (d *door) observer(local, tokens bool) http.Handler {
	mux := http.NewServeMux()
	options := d.page
	if tokens {
		options.Hosts = []string{"*"}
	}
	d.show(mux, options)
	d.probes(mux)
	return d.guard(routes(mux), local || tokens)
}

// linksTo returns the function that makes the link to another agent's page out of -consoles. An
// empty pattern makes none.
func linksTo(pattern string) (func(mortise.Member) string, error) {
	if pattern == "" {
		return nil, nil
	}
	at, err := url.Parse(strings.NewReplacer("{host}", "host", "{name}", "name").Replace(pattern))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || !strings.Contains(pattern, "{") {
		return nil, fmt.Errorf("-consoles: %q is not a URL with {host} or {name}, like http://{host}:7949/console/", pattern)
	}
	return func(m mortise.Member) string {
		host, _, err := net.SplitHostPort(m.Address)
		if err != nil && strings.Contains(pattern, "{host}") {
			return ""
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return strings.NewReplacer("{host}", host, "{name}", url.PathEscape(m.Name)).Replace(pattern)
	}, nil
}
