package main

import (
	"net/http"
	"slices"
	"strings"
)

// This file tells the requests of web pages from those of programs.

const (
	pagePath = "/console/"
	tryPath  = "/try/" // of dev -try only
	tofuPath = "/v1/tofu"
)

// takesBasic reports whether a token may be the password of Basic authentication. Browsers and
// OpenTofu have a password as the usual way to send a secret. The simulation of dev needs no token.
func takesBasic(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, pagePath) || r.URL.Path == tofuPath
}

// fromPage reports whether a web page other than the agent's own has sent a request. own are the
// paths of the pages that the listener serves. Requests for images and links do not have the header
// Origin, so fromPage also reads Sec-Fetch-Site.
func fromPage(r *http.Request, own []string) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	if r.Header.Get("Origin") != "" {
		return true
	}
	isOwn := func(path string) bool { return strings.HasPrefix(r.URL.Path, path) }
	return from != "" && from != "none" && (from != "same-origin" || !slices.ContainsFunc(own, isOwn))
}

func challenge(w http.ResponseWriter, r *http.Request) {
	if takesBasic(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="a token of this agent, as the password"`)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
}
