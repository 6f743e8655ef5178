package capability

import "time"

// Tier is the kind of secret or certificate that a peer has proved. The zero Tier is none, and
// allows nothing.
type Tier uint8

// The tiers. Only Root may found, vote, answer and serve.
const (
	Root   Tier = iota + 1 // the root secret, or a name in TLSPeers
	Member                 // a capability with the word member: locks everything, embeds the library, dials only
	Guest                  // any other capability: dials only
)

// String returns the word for t.
func (t Tier) String() string {
	switch t {
	case Root:
		return "root"
	case Member:
		return "member"
	case Guest:
		return "guest"
	}
	return "none"
}

// TierOf returns the tier that a capability gives. Nil gives Root.
func TierOf(c *Capability) Tier {
	switch {
	case c == nil:
		return Root
	case c.Member():
		return Member
	}
	return Guest
}

// Peer is what a verified certificate chain says about the other side of a connection. It is a
// plain value. The zero Peer has proved nothing and has no rights, although its Capability is nil:
// check the Tier first, or call Allowed.
type Peer struct {
	// Tier is the tier that the chain proves.
	Tier Tier
	// Capability is what the peer may do. It is nil for Root, which may do everything.
	Capability *Capability
	// Name is for audit logs: the capability's "for", or the listed name. It is empty for a root
	// secret.
	Name string
	// NotAfter is when the chain expires and the connection should end.
	NotAfter time.Time
}

// Allowed returns the capability against which the peer's requests are checked. It returns false if
// the peer has proved nothing.
func (p Peer) Allowed() (*Capability, bool) { return p.Capability, p.Tier != 0 }
