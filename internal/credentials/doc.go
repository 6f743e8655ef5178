// Package credentials makes the TLS configurations of a node, and determines what a verified peer
// may do. Its input is a root secret that all instances share, a secret derived from it, the user's
// own configuration, or files that are replaced while the node runs.
//
// # What it is
//
// A [Source] returns two configurations, for accepted and for dialed connections, and the [Peer] at
// the other end of a connection. [FromSecret] needs no PKI:
//
//	root secret, Config.Cluster
//	    --HKDF-SHA256--> Ed25519 key: the cluster's authority, the same on every instance
//	Config.OldSecrets
//	    --HKDF-SHA256--> Ed25519 keys: authorities that are trusted too
//	random key of this process
//	    --signed by the authority--> this node's certificate, valid for 7 days, renewed after one
//
// A secret from [GenerateSecret] (msk1_, 256 random bits, a checksum) is used directly. Any other
// is first stretched by 200,000 rounds of PBKDF2-SHA256 with the label in the salt, once in a
// process.
//
// [DeriveSecret] makes a secret with fewer rights (msd1_): an intermediate certificate, signed by
// the authority, that contains a capability text (see internal/capability), with its key. Its
// holder signs its own leaf with it. No instance stores it.
//
//	chain                      tier
//	leaf, authority            Root: may found, vote, answer and serve
//	leaf, derived, authority   Member if the text of the derived certificate says member, otherwise
//	                           Guest; both may only dial
//	anything else              refused
//
// A certificate has one name, a hash of the cluster's label. Peers check it, so host names and
// addresses do not matter. [FromTLS] checks and hardens the user's configuration. [FromFiles] reads
// a certificate, a key and authorities, again when they change. With both, [Names] lists which
// names in certificates belong to instances (Root), and which to guests with which rights. Both
// sides check them. [Explain] describes why a handshake failed.
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
// Only instances of neighboring steps are guaranteed to connect, in both directions. After a leak
// only step 3 excludes the leaked secret.
//
// The holder of a derived secret trusts only the authority of its own root secret and names it in
// the server name (SNI). An instance has a certificate of that authority as long as that root
// secret is in Secret or OldSecrets. So secrets derived from the old secret work until step 3, and
// those derived from the new one from step 1 on: replace them in between. Equal rights have an
// equal hash, before and after.
//
// # Guarantees
//
//   - TLS 1.3 only, both sides present a certificate, and every connection is a full handshake
//     against the present authorities and certificates.
//   - With a secret, an accepted peer knows the root secret, an old one or one derived from these,
//     and uses the same cluster label.
//   - Tier and rights come from the verified chain alone. A capability text in a leaf is ignored,
//     and a derived certificate cannot sign another. A dialer refuses every server that is not of
//     the root tier, so no guest can pose as an instance.
//   - With the user's own certificates, an accepted peer has a listed name, on both sides, and also
//     with the configurations that GetConfigForClient returns. The only exception is Config.TLS
//     with a VerifyConnection and no list: then that function decides.
//   - The authority depends on secret and cluster only, never on the version of Go or of this
//     package. Tests pin its key.
//   - A certificate in use stays valid for another six days, and was valid 23 hours ago, so
//     instances whose clocks differ by less accept each other. A node whose clock is set back makes
//     a new one. No certificate outlives the derived secret that has signed it.
//   - [Source] and [SecretConfig] print and log no secrets and keys, under any verb.
//
// # Concurrency
//
// Everything is safe for concurrent use. There are no goroutines: the handshake (or the call of
// ClientTLS, Peer or Recheck) that finds a certificate or the files out of date renews or checks
// them. Mutexes are never held across I/O: while one handshake reads files, which may hang, the
// others use the previous content. Stretched secrets are cached for the process (stretch.go).
//
// # Failure
//
// The constructor reports all mistakes in the configuration, by field. A file that is broken or
// missing later is reported once through slog and retried at most once a second. Meanwhile the last
// good set stays in use, expired or not.
//
// # Limits
//
// An attacker that can reach the port sees a certificate, and can try guesses against it offline,
// so a secret must be random. A generated one is. Others are refused if their estimated strength
// (estimate.go) is below 128 bits. The estimate finds the usual mistakes and is not a proof.
//
// A certificate proves tier and rights, never which instance a process is: all instances may share
// one, and the key of an instance ID is proved on the connection after TLS (internal/nodeid,
// transport). Every holder of the root secret can claim any name, become a voter by the group's
// rules, and derive secrets unnoticed. It cannot claim the ID of another instance.
//
// A derived secret can be revoked before its end only by replacing the root secret. A connection
// outlives its certificates and authorities: the caller must call [Source.Recheck]. Go's TLS client
// sends "bad certificate" for every cause, so only the client knows whether it was the secret, the
// cluster or the clock.
//
// For dialed connections of FromFiles, and of FromTLS with names, InsecureSkipVerify is set,
// because crypto/tls can compare only one host name, and no URI. VerifyConnection does everything
// that crypto/tls would have done, and checks the names. With GODEBUG=fips140=on crypto/tls also
// restricts the keys in chains to approved kinds and sizes, which VerifyConnection does not repeat.
// That check still applies to accepted connections, to signatures, and to everything made from a
// secret: Ed25519, HKDF and PBKDF2 with SHA-256. The tests of this package pass with fips140=on,
// with fips140=only, and with the frozen module of GOFIPS140=v1.0.0.
//
// # Refused alternative
//
// Pre-shared keys of TLS 1.3: crypto/tls does not support them. A common certificate for all nodes,
// or one derived from the secret: it would never expire. Authorities derived from secret and
// capability text: the unverified leaf of a stranger would have to choose them, and two guests with
// the same text could pose as servers to each other. A list of guests on the instances: that would
// be state to agree on.
package credentials
