package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/mortise-lock/mortise"
)

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
