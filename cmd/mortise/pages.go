package main

import (
	"net/http"
	"strings"
)

// This file tells the requests of web pages from those of programs.

const (
	pagePath = "/console/"
	tryPath  = "/try/" // of dev
	tofuPath = "/v1/tofu"
)

func isPage(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, pagePath) || strings.HasPrefix(r.URL.Path, tryPath)
}

// takesBasic reports whether a token may be the password of Basic authentication. Browsers and
// OpenTofu have a password as the usual way to send a secret.
func takesBasic(r *http.Request) bool { return isPage(r) || r.URL.Path == tofuPath }

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
