// Package credentials makes the TLS configurations of a node, and determines what a verified peer
// may do. It makes them from a root secret that all instances share, from a secret derived from it,
// from the user's own configuration, or from files that are replaced while the node runs.
//
// # What it is
//
// A [Source] returns two configurations, for the connections that a node accepts and for those that
// it dials. For each connection it returns the [Peer] at the other end. [FromSecret] needs no PKI:
//
//	root secret, Config.Cluster
//	    --HKDF-SHA256--> Ed25519 key: the cluster's authority, the same on every instance
//	Config.OldSecrets
//	    --HKDF-SHA256--> Ed25519 keys: authorities that are trusted too
//	random key of this process
//	    --signed by the authority--> this node's certificate, valid for 7 days, renewed after one
//
// A secret from [GenerateSecret] (msk1_, 256 random bits, a checksum) is used directly. Any other
// is first stretched by 200,000 rounds of PBKDF2-SHA256 with the label in the salt, once for each
// secret and label in a process.
//
// [DeriveSecret] makes a secret with fewer rights (msd1_): an intermediate certificate, signed by
// the authority, that contains a capability text (see internal/capability), with its key. Its
// holder signs its own leaf with it. No instance stores anything about it.
//
//	chain                      tier
//	leaf, authority            Root: may found, vote, answer and serve
//	leaf, derived, authority   Member if the text of the derived certificate says member, otherwise
//	                           Guest; both may only dial
//	anything else              refused
//
// A certificate has one DNS name, a hash of the cluster's label, and no other name. Peers check it,
// so host names and addresses do not matter. [FromTLS] checks and hardens the user's configuration.
// [FromFiles] reads a certificate, a key and authorities from files and reads them again when they
// change. With both, [Names] lists which names in certificates belong to instances (Root), and
// which belong to guests and with which rights. These are checked on both sides of a connection.
// [Explain] says in one sentence why a handshake failed.
//
// # How a secret is replaced
//
// By three rolling deploys. Each must reach every instance before the next begins:
//
//	        Secret   OldSecrets
//	start   old      -
//	1.      old      new         every instance trusts the new secret, none uses it yet
//	2.      new      old         the instances use the new secret, one after the other
//	3.      new      -           the old secret, and all derived from it, is worthless
//
// Instances of neighboring steps can connect in both directions. For instances two steps apart
// there is no guarantee. After a leak, steps 1 and 2 still trust the leaked secret; only step 3
// excludes it.
//
// The holder of a derived secret trusts only the authority of its own root secret and names it in
// the server name (SNI). An instance answers with a certificate of that authority as long as that
// root secret is in Secret or OldSecrets. So secrets derived from the old secret work until step 3,
// and those derived from the new one work from step 1 on: replace them in between. Equal rights
// have an equal text, and so an equal hash, before and after.
//
// # Guarantees
//
//   - TLS 1.3 only, both sides present a certificate, and no session is resumed: every connection
//     is a full handshake against the authorities and certificates of that moment.
//   - With a secret, an accepted peer knows the root secret, an old one or one derived from these,
//     and uses the same cluster label.
//   - Tier and rights come from the verified chain alone. A capability text in a leaf is ignored,
//     and a derived certificate cannot sign another. A dialer refuses every server that is not of
//     the root tier, so that no guest can pose as an instance.
//   - With the user's own certificates, an accepted peer has a listed name, on accepted and on
//     dialed connections, and with the configurations that GetConfigForClient returns. The only
//     exception is Config.TLS with a VerifyConnection and no list: then that function decides.
//   - The authority depends on secret and cluster only, never on the version of Go or of this
//     package: its key is pinned by tests.
//   - A certificate in use stays valid for another six days, and was valid 23 hours ago, so
//     instances whose clocks differ by less than that accept each other. A node makes a new one if
//     its own clock is set back. No certificate outlives the derived secret that has signed it.
//   - Secrets and keys are not printed or logged: [Source] and [SecretConfig] omit them under every
//     verb.
//
// # Concurrency
//
// Everything is safe for concurrent use. There are no goroutines: the handshake (or the call of
// ClientTLS, Peer or Recheck) that finds a certificate or the files out of date renews or checks
// them. Mutexes are never held across I/O. While one handshake reads files, which may hang, the
// others use the previous content. Stretched secrets are kept for the process, in the only
// package-level variable of this repository, a bounded cache whose values depend only on their
// keys.
//
// # Failure
//
// The constructor reports all mistakes in the configuration at once, by the names of the fields. A
// file that is broken or missing later is reported once through slog and retried at most once a
// second. Meanwhile the last good set stays in use, expired or not.
//
// # Limits
//
// The security depends on the strength of the secret. An attacker that can reach the port sees a
// certificate, and can try guesses against it offline, so a secret must be random. A generated one
// is. Others are refused if their estimated strength is below 128 bits. The estimate uses the
// alphabet and the number of characters that neither repeat earlier ones nor count up or down, and
// the number of words if they look like words. It finds the usual mistakes (one letter,
// 0123456789abcdef twice, a phrase) and is not a proof.
//
// A certificate proves that a process may connect, and its tier and rights. It never proves which
// instance it is: all instances may share one, and the key of an instance ID is proved on the
// connection after TLS (internal/nodeid, transport). Every holder of the root secret can claim any
// name, become a voter by the group's rules, and derive secrets unnoticed. It cannot claim the ID
// of another instance.
//
// A derived secret can be revoked before its end only by replacing the root secret. A connection
// does not end by itself when one of its certificates has expired or lost its authority: the caller
// must call [Source.Recheck]. Go's TLS client sends "bad certificate" to the server for every
// cause, so only the client's side knows whether it was the secret, the cluster or the clock.
//
// For dialed connections of FromFiles, and of FromTLS with names, InsecureSkipVerify is set,
// because crypto/tls can compare only one host name, and no URI. VerifyConnection does everything
// that crypto/tls would have done, and checks the names. With GODEBUG=fips140=on crypto/tls also
// restricts the keys in the chains that it verifies to approved kinds and sizes. VerifyConnection
// does not repeat that check. It applies to accepted connections, to signatures, and to everything
// made from a secret: Ed25519, HKDF and PBKDF2 with SHA-256. The tests of this package pass with
// fips140=on, with fips140=only, and with the frozen module of GOFIPS140=v1.0.0.
//
// # Refused alternative
//
// Pre-shared keys of TLS 1.3 would need no certificates, but crypto/tls does not support them. A
// common certificate for all nodes, or one derived from the secret, would never expire. Authorities
// derived from secret and capability text would have to be chosen by the unverified leaf of a
// stranger, and two guests with the same text could pose as servers to each other. A list of guests
// on the instances would be state to agree on.
package credentials
