package console

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// named reports whether a request names the console by an IP address, by localhost, or by one of
// Options.Hosts. Any other name may belong to another site that lets its name resolve to this
// address, so that a browser regards that site's page and the console as one site (DNS rebinding).
func (h *handler) named(r *http.Request) bool {
	host := hostOf(r)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(h.options.Hosts, func(own string) bool {
		return own == "*" ||
			strings.EqualFold(own, host)
	})
}

// hostOf returns the host that a request names, without its port.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// misnamed rejects a request that names the console by another name.
func misnamed(w http.ResponseWriter, r *http.Request) {
	host := clip(shown(hostOf(r)), briefly)
	text := "the Host header of this request has the name %q, which this console does not accept: " +
		"use an IP address or localhost. " +
		"If it is the console's name, for example behind a proxy, add %[1]q to Hosts of console.Options"
	http.Error(w, fmt.Sprintf(text, host), http.StatusForbidden)
}
