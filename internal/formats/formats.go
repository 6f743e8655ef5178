// Package formats contains the texts and numbers by which the two ends of a connection find out
// that they use the same format. They are here, and not in the packages that encode and decode the
// formats, so that the hostile peers of the tests ([internal/lab/attack]) send them too. Otherwise
// a change of a number would end every attack at its first message, and no test would notice.
//
// Guarantees, concurrency, failure: none; it has only constants. Limits: the rules of the state
// machine have their version in package lockfsm, and files have theirs in the packages that write
// them. Refused alternative: exported constants of the packages that encode, because package
// internal/lab/attack is a second implementation and imports none of them.
package formats

const (
	// Hello is the version of the messages in peer.proto of package transport.
	Hello = 1
	// Founding is the version of the messages of package cluster/founding.
	Founding = 1
	// Gossip is the version of the data about an instance in gossip, of package cluster/gossip/swim.
	Gossip = 1
)

// The beginning of every connection between instances; see package transport.
const (
	// Preface distinguishes the protocol from HTTP/2.
	Preface = "mortise\n"
	// HelloContext precedes the bytes that the key of an instance signs.
	HelloContext = "mortise-hello/1\x00"
	// Exporter is the label of the keying material of a TLS connection (RFC 9266).
	Exporter = "EXPORTER-mortise-hello-v1"
	// PlainContext precedes the random numbers that are the binding without TLS.
	PlainContext = "mortise-plain/1\x00"
	// BindingBytes is the length of the binding, and of each random number.
	BindingBytes = 32
)
