package console

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/plain"
)

// named reports whether the Host header of a request contains an IP address, localhost, or one of
// Options.Hosts. Any other name could belong to another site (DNS rebinding).
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

func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

func misnamed(w http.ResponseWriter, r *http.Request) {
	host := clip(plain.Text(hostOf(r)), briefly)
	text := "the Host header of this request has the name %q, which this console does not accept: " +
		"use an IP address or localhost. " +
		"If it is the console's name, for example behind a proxy, add %[1]q to Hosts of console.Options"
	http.Error(w, fmt.Sprintf(text, host), http.StatusForbidden)
}
