// Package attack implements a hostile peer for the protocol of package transport. It is for tests
// and for the campaign in internal/proctest/attack. The hostile process has the secret or a
// certificate, so it may connect. It can send messages that no correct instance sends.
//
// A [Speaker] opens connections, with TLS if required, on which only the preface is sent. On a
// [Conn] the caller can send any greeting, for example one with another instance's public key, or
// one with the bytes or the signature of a greeting from another connection. [Sign] makes the
// greeting that a correct instance would send. [Conn.Frame] and [Conn.Calls] continue after it.
// [InstanceInfo], [Meta] and [Alive] encode messages of founding and of gossip with any content.
// [Members] decodes the addresses of the members from gossip.
//
// The encodings are implemented here a second time on purpose. The package shares only the
// generated code of the messages with transport, so it does not hide an error in the product's
// encoder by using that encoder.
//
// Concurrency: a Speaker is safe for concurrent use, and a Conn belongs to one goroutine. Failure:
// errors are those of the connection. Limits: the greeting of the accepting side is read, but never
// verified.
package attack
