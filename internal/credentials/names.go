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

// Names defines which names in the certificates of the user's own authority are accepted. It is
// copied.
type Names struct {
	Peers  []string          // names of instances: DNS names or SPIFFE IDs; if empty, ServerName of Config.TLS
	Guests map[string]string // from the name of a guest to its capability text, or only its rights
}

const spiffe = "spiffe://"

type names struct {
	// listed maps each accepted name to its rights. Nil means an instance. Names are in lower case,
	// except SPIFFE IDs.
	listed map[string]*capability.Capability
}

// newNames reports all mistakes. If there are no peers, the error contains errNoPeers.
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
	"list the DNS names or SPIFFE IDs that only the instances' certificates carry " +
	"(with Config.TLS, its ServerName may be the one name that all of them carry, or VerifyConnection may decide)")

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

// find returns the peer that the names in a certificate identify. Names are compared literally,
// including wildcards. If one of the names belongs to an instance, the peer is an instance. A
// certificate with the names of several guests is refused, because their rights may differ.
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

// namesOf returns the names in a certificate. URIs count only if there is exactly one, as in a
// SPIFFE certificate.
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
