// Package attack implements a hostile peer for the protocol of package transport, for tests and for
// the campaign in internal/lab/proctest/attack. The hostile process has the secret or a
// certificate, so it may connect. It can send messages that no correct instance sends.
//
// A [Speaker] opens connections, with TLS if required. On a [Conn] the caller can send any
// greeting, for example with another instance's public key or signature. [Sign] makes a correct
// greeting. [Conn.Frame] and [Conn.Calls] continue after the greeting. [InstanceInfo], [Meta] and
// [Alive] encode messages of founding and of gossip with any content. [Members] decodes the members
// from gossip.
//
// Of the product's code, the package uses only generated messages, and the versions in package
// formats. Its encodings are a second implementation, so that they do not hide an error of the
// product's encoder. The tests of the packages that decode them check that they are understood.
//
// Concurrency: a Speaker is safe for concurrent use, and a Conn belongs to one goroutine. Failure:
// errors are those of the connection. Limits: the greeting of the accepting side is not verified.
package attack
