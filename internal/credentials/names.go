package credentials

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/capability"
)

// Names defines the meaning of the names in certificates of the user's own authority. It is copied.
type Names struct {
	Peers  []string          // of instances: DNS names or SPIFFE IDs; if empty, ServerName is used
	Guests map[string]string // of guests: a name, and a capability's text or its rights, one a line
}

const spiffe = "spiffe://"

// names decides by the names in a certificate. It is immutable.
type names struct {
	listed map[string]*capability.Capability // lower-case DNS name or SPIFFE ID; nil for a peer
}

// newNames reports every mistake at once. Without any peer the error is errNoPeers.
func newNames(n Names, serverName string) (*names, error) {
	peers := n.Peers
	if len(peers) == 0 && serverName != "" {
		peers = []string{serverName}
	}
	known, errs := &names{listed: map[string]*capability.Capability{}}, []error(nil)
	for i, name := range peers {
		spelled, err := checkName(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("Config.TLSPeers[%d]: %w", i, err))
			continue
		}
		known.listed[spelled] = nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.Guests)) {
		spelled, err := checkName(name)
		if err == nil {
			if _, twice := known.listed[spelled]; twice {
				err = errors.New("is listed twice, or in Config.TLSPeers too")
			}
		}
		var c *capability.Capability
		if err == nil {
			c, err = capability.For(name, n.Guests[name])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("Config.TLSGuests[%q]: %w", name, err))
			continue
		}
		known.listed[spelled] = c
	}
	if len(peers) == 0 {
		errs = append(errs, errNoPeers)
	}
	return known, errors.Join(errs...)
}

var errNoPeers = errors.New("Config.TLSPeers: is empty, so every certificate of the authority would be an " +
	"instance that may take and break all locks: " +
	"list the DNS names or SPIFFE IDs that only the instances' certificates carry, or set ServerName to the one " +
	"name that all of them carry " +
	"(with Config.TLS, VerifyConnection may decide instead)")

// checkName returns a name in the form in which it is compared.
func checkName(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, spiffe); ok {
		u, err := url.Parse(name)
		domain, _, path := strings.Cut(rest, "/")
		if err != nil || !path || u.Path == "/" || u.Host != domain || domain != strings.ToLower(domain) ||
			u.RawQuery != "" || u.Fragment != "" || u.Port() != "" {
			return "", fmt.Errorf("%q is not a SPIFFE ID: write spiffe://trust.domain/path", name)
		}
		return name, nil
	}
	switch {
	case net.ParseIP(name) != nil:
		return "", fmt.Errorf("%q is an IP address: list a DNS name or a SPIFFE ID that the certificate carries", name)
	case name == "" || len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool { return !dnsRune(r) }):
		return "", fmt.Errorf("%q is neither a DNS name nor a SPIFFE ID (spiffe://trust.domain/path)", name)
	}
	return strings.ToLower(name), nil
}

func dnsRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._*", r)
}

type unlisted struct{ cert *x509.Certificate }

func (u unlisted) Error() string {
	return fmt.Sprintf("credentials: the certificate (%s) is in neither Config.TLSPeers nor Config.TLSGuests",
		subjectOf(u.cert))
}

// find returns the meaning of the names in a certificate. They are compared literally: a wildcard
// counts only if it is listed as such. If one of several listed names is a peer's, it counts.
// Several guests' names are refused, since it is unclear which rights count.
func (n *names) find(leaf *x509.Certificate) (Peer, error) {
	var found []Peer
	for _, name := range namesOf(leaf) {
		c, listed := n.listed[name]
		if !listed {
			continue
		}
		p := Peer{Tier: capability.TierOf(c), Capability: c, Name: cmp.Or(c.For(), name)}
		if p.Tier == Root {
			return p, nil
		}
		found = append(found, p)
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return Peer{}, unlisted{leaf}
}

// namesOf returns the names in a certificate. A SPIFFE certificate has exactly one URI.
func namesOf(leaf *x509.Certificate) []string {
	var list []string
	for _, name := range leaf.DNSNames {
		list = append(list, strings.ToLower(name))
	}
	if len(leaf.URIs) == 1 {
		for _, u := range leaf.URIs {
			list = append(list, u.String())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
