package main

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/internal/credentials"
)

// This file decides which requests enter the door of an agent.

// guard keeps browsers out, but for the page: a page from anywhere could otherwise have them talk
// to an address of this machine. With anyHost a request may name any host.
func (d *door) guard(next http.Handler, anyHost bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		shown, _ := bearer(r)
		switch {
		case fromPage(r):
			say(w, http.StatusForbidden, problem{"web pages are not served here", "forbidden", nil})
		case !anyHost && host != "localhost" && (ip == nil || !ip.IsLoopback()):
			say(w, http.StatusForbidden, problem{"ask by a loopback address, or localhost, not by " +
				strconv.Quote(r.Host), "forbidden", nil})
		case r.URL.Path == "/healthz":
			next.ServeHTTP(w, r)
		case credentials.IsDerived(shown):
			d.admit(w, r, shown, next)
		case d.tokens != nil && d.tokens.which(r) == 0:
			challenge(w, r)
			text := "show one of this agent's tokens, or a derived secret: Authorization: Bearer TOKEN"
			say(w, http.StatusUnauthorized, problem{text, "no token", nil})
		case d.tokens == nil && r.Header.Get("Authorization") != "":
			// A derived secret that is misspelt must not become the agent's own rights.
			w.Header().Set("WWW-Authenticate", "Bearer")
			text := "this agent has no tokens: show a derived secret (Authorization: Bearer msd1_...), or nothing"
			say(w, http.StatusUnauthorized, problem{text, "no token", nil})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// fromPage reports whether a page in a browser has sent a request, other than the agent's own page.
// An image or a link sends no Origin.
func fromPage(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	if r.Header.Get("Origin") != "" {
		return true
	}
	return from != "" && from != "none" && (from != "same-origin" || !isPage(r))
}

// challenge says how to show a token. A browser can show one for the page, as a password.
func challenge(w http.ResponseWriter, r *http.Request) {
	if isPage(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="a token of this agent, as the password"`)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
}
