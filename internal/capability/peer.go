package capability

import "time"

// Tier is the kind of secret or certificate that a peer has proved. The zero Tier allows nothing.
type Tier uint8

// The tiers. Only peers of the tier Root may found a group, vote, answer questions and accept
// connections.
const (
	Root   Tier = iota + 1 // a root secret, or a name in TLSPeers
	Member                 // a capability with the word member: may read, write and lock every key
	Guest                  // any other capability
)

// String returns the name of t.
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

// TierOf returns the tier of a peer with capability c. Nil means Root.
func TierOf(c *Capability) Tier {
	switch {
	case c == nil:
		return Root
	case c.Member():
		return Member
	}
	return Guest
}

// Peer describes what a verified certificate chain proves about the other side of a connection. The
// zero Peer has no rights, although its Capability is nil. So check the Tier before the Capability,
// or call Allowed.
type Peer struct {
	Tier Tier
	// Capability contains the rights of the peer. It is nil for Root, which may do everything.
	Capability *Capability
	// Name is shown in audit logs: the name in the capability, or the listed name, or empty for a
	// root secret.
	Name string
	// NotAfter is the time when the chain expires and the connection should end.
	NotAfter time.Time
}

// Allowed returns the capability against which the peer's requests must be checked, or false if the
// peer has proved nothing.
func (p Peer) Allowed() (*Capability, bool) { return p.Capability, p.Tier != 0 }
