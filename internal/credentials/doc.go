// Package credentials makes the TLS configurations of a node: from one secret that all instances share, from a configuration of the
// user's own, or from files that are replaced while the node runs.
//
// # What it is
//
// A [Source] gives out two configurations, for the connections a node accepts and for those it dials. [FromSecret] needs no PKI:
//
//	Config.Secret, Config.Cluster --HKDF-SHA256--> Ed25519 key --> the cluster's authority, the same on every node
//	Config.OldSecrets             --HKDF-SHA256--> Ed25519 keys --> authorities that are trusted too, and sign nothing
//	random key of this process    --signed by the authority--> this node's certificate, valid for 7 days, renewed after one
//
// The certificate carries one DNS name made from the cluster's label, and peers check that name, so host names and addresses do not
// matter. [FromTLS] checks and hardens the user's configuration; [FromFiles] reads a certificate, a key and authorities from files and
// reads them again when they change. [Explain] says in one sentence why a handshake failed.
//
// # How a secret is replaced
//
// By three rolling deploys. Each must have reached every instance before the next begins:
//
//	        Secret   OldSecrets
//	start   old      -
//	1.      old      new         everybody trusts the new secret, nobody uses it yet
//	2.      new      old         everybody uses the new secret, one after the other
//	3.      new      -           the old secret is worth nothing any more
//
// Instances of neighboring steps talk to each other, whoever dials; instances two steps apart refuse each other. After a leak steps 1
// and 2 still trust the secret that leaked: only step 3 shuts it out.
//
// # Guarantees
//
//   - TLS 1.3 only, both sides present a certificate, and no session is resumed: every connection is a full handshake against the
//     authorities and certificates of that moment.
//   - With a secret, who is let in knows the secret or one of the old ones, and uses the same cluster label.
//   - The authority depends on secret and cluster only, never on the version of Go or of this package: its key is pinned by a test.
//   - A certificate that is handed out stays valid for six days more, and was valid 23 hours ago: instances whose clocks differ by less
//     than that accept each other. A node whose own clock is stepped makes a new one.
//   - The secret is not kept, printed or logged, and neither are keys: [Source] and [SecretConfig] print without them, under every verb.
//
// # Concurrency
//
// Everything is safe for concurrent use. There are no goroutines: certificates are renewed, and files looked at, by the handshake (or
// the call of ClientTLS) that finds them old. The mutexes are never held across I/O; while one handshake reads files, which may hang, the
// others go on with what was read before.
//
// # Failure
//
// A mistake in the configuration is an error of the constructor, all mistakes at once, by the name of the field. A file that is broken
// or missing later is reported once through slog, retried at most once a second, and the last good set stays in use, expired or not.
//
// # Limits
//
// The strength is the secret's. Whoever can reach the port sees a certificate, and can try guesses against it without asking again, so
// a secret must be random (openssl rand -hex 32), not a phrase; its length is checked and its randomness cannot be. All who know
// it are equal: a member can claim any name, and no single member can be shut out but by replacing the secret. A connection lives
// on after its certificates have expired or a secret was dropped, until either side ends it. Go's TLS client says "bad certificate" to
// the server whatever it did not like, so that only the client's side knows whether it was the secret, the cluster or the clock.
// Certificates of the user's own are checked by RootCAs and ClientCAs; other schemes, such as SPIFFE IDs, can only narrow that, by
// VerifyConnection. Of files, the authorities are reloaded for accepted connections always, and for dialed ones at each ClientTLS.
//
// # Refused alternative
//
// Pre-shared keys of TLS 1.3 would need no certificates, but crypto/tls has none. A common certificate for all nodes, or one derived from
// the secret, would never expire. Stretching the secret (PBKDF2) would make phrases a little better and every start slower, and phrases
// would still be wrong. The requester verifying by himself, with InsecureSkipVerify, could replace authorities in a configuration that
// is in use, but then one forgotten line lets everybody in, and gives the other side no better word.
package credentials
