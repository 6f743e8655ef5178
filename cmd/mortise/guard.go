package main

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/internal/credentials"
)

// guard rejects requests from web pages other than the agent's own page, because any page can make
// a browser send requests to an address of this machine. With anyHost, the Host header may contain
// any name.
func (d *door) guard(next http.Handler, anyHost bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		shown, _ := bearer(r)
		no := func(code int, kind, text string) {
			d.entry.refuse(w, r, func() { say(w, code, problem{text, kind, nil}) })
		}
		switch {
		case fromPage(r):
			no(http.StatusForbidden, "forbidden", "requests of web pages are refused, except those of this "+
				"agent's own page")
		case !anyHost && host != "localhost" && (ip == nil || !ip.IsLoopback()):
			no(http.StatusForbidden, "forbidden", "use a loopback address or localhost, not "+strconv.Quote(r.Host))
		case r.URL.Path == "/healthz":
			next.ServeHTTP(w, r)
		case credentials.IsDerived(shown):
			d.admit(w, r, shown, next)
		case d.tokens != nil && d.tokens.which(r) == 0:
			challenge(w, r)
			no(http.StatusUnauthorized, "no token", "send one of this agent's tokens, or a derived secret: "+
				"Authorization: Bearer TOKEN")
		case d.tokens == nil && r.Header.Get("Authorization") != "":
			// A request with a misspelt derived secret must not get the agent's own rights.
			w.Header().Set("WWW-Authenticate", "Bearer")
			no(http.StatusUnauthorized, "no token", "this agent has no tokens: send a derived secret "+
				"(Authorization: Bearer msd1_...), or no Authorization")
		default:
			d.entry.admit(w, r, d.client(r), next.ServeHTTP)
		}
	})
}

// fromPage reports whether a web page other than the agent's own has sent a request. Requests for
// images and links do not have the header Origin, so fromPage also reads Sec-Fetch-Site.
func fromPage(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	if r.Header.Get("Origin") != "" {
		return true
	}
	return from != "" && from != "none" && (from != "same-origin" || !isPage(r))
}

func challenge(w http.ResponseWriter, r *http.Request) {
	if takesBasic(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="a token of this agent, as the password"`)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
}
