// Package attack speaks the protocol of package transport without keeping to it. It is for tests
// and for the campaign in internal/proctest/attack: a hostile process that may come in (it has the
// secret, or a certificate) and says what no correct instance says.
//
// A [Speaker] opens connections, with TLS if there is any, on which nothing but the preface is
// said. On a [Conn] any greeting can be sent: with another instance's public key, with the bytes or
// the signature of a greeting from another connection. [Sign] makes the greeting that a correct
// instance would send, and [Conn.Link] and [Conn.Calls] go on from there. [InstanceInfo], [Meta]
// and [Alive] write the words of birth and of gossip with any content, [Members] reads where gossip
// has its members.
//
// The layouts are written here a second time, on purpose: the package shares with transport only
// the generated code of its messages, so an error in the product's encoder is not hidden by its use
// here.
//
// Concurrency: a Speaker is safe for concurrent use, a Conn belongs to one goroutine. Failure:
// errors are those of the connection. Limits: only the accepting side's greeting is read, never
// verified.
package attack
