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
// Options.Hosts. Any other name may be that of another site, which lets its name lead to this
// address, so that a browser takes its page and the console for one site (DNS rebinding).
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

// hostOf is the host that a request names, without its port.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// misnamed refuses a request that names the console by another name.
func misnamed(w http.ResponseWriter, r *http.Request) {
	host := clip(shown(hostOf(r)), briefly)
	text := "this console is not known by the name %q, which the Host header gives: ask by an IP address or localhost. " +
		"If it is the console's name, behind a proxy for example, its owner adds %[1]q to Hosts of console.Options"
	http.Error(w, fmt.Sprintf(text, host), http.StatusForbidden)
}
