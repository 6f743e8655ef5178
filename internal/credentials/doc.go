// Package credentials makes the TLS configurations of a node, and says what a verified peer may do:
// from a root secret that all instances share, from a secret that was derived from it, from a
// configuration of the user's own, or from files that are replaced while the node runs.
//
// # What it is
//
// A [Source] gives out two configurations, for the connections that a node accepts and for those
// that it dials, and tells of each connection which [Peer] is at its other end. [FromSecret] needs
// no PKI:
//
//	root secret, Config.Cluster --HKDF-SHA256--> Ed25519 key --> the cluster's authority, the same on every instance
//	Config.OldSecrets           --HKDF-SHA256--> Ed25519 keys --> authorities that are trusted too
//	random key of this process  --signed by the authority--> this node's certificate, valid for 7 days, renewed after one
//
// A secret that [GenerateSecret] has made (msk1_, 256 random bits, a checksum) is used as it is.
// Any other is stretched first, by 200,000 rounds of PBKDF2-SHA256 with the label in the salt, once
// for each secret and label in a process.
//
// [DeriveSecret] makes a secret with fewer rights (msd1_): an intermediate certificate, signed by
// the authority, that holds a capability text (see internal/capability), with its key. Its holder
// signs its own leaf with it. No instance stores anything about it.
//
//	chain                                tier
//	leaf, authority                      Root: may found, vote, answer and serve
//	leaf, derived, authority             Member if the text of the derived certificate says member, otherwise Guest: dials only
//	anything else                        refused
//
// A certificate carries one DNS name, a hash of the cluster's label, and no other name. Peers check
// it, so host names and addresses do not matter. [FromTLS] checks and hardens the user's
// configuration; [FromFiles] reads a certificate, a key and authorities from files and reads them
// again when they change. With both, [Names] lists which names in certificates are instances (Root)
// and which are guests with which rights, and these are checked on both sides of a connection.
// [Explain] says in one sentence why a handshake failed.
//
// # How a secret is replaced
//
// By three rolling deploys. Each must have reached every instance before the next begins:
//
//	        Secret   OldSecrets
//	start   old      -
//	1.      old      new         every instance trusts the new secret, none uses it yet
//	2.      new      old         the instances use the new secret, one after the other
//	3.      new      -           the old secret, and all that was derived from it, is worth nothing any more
//
// Instances of neighboring steps talk to each other in both directions. Between instances two steps
// apart nothing is promised. After a leak steps 1 and 2 still trust the secret that leaked: only
// step 3 shuts it out.
//
// The holder of a derived secret trusts the authority of its own root secret alone and names it in
// the server name (SNI). An instance answers with a certificate of that authority as long as that
// root secret stands in Secret or OldSecrets. So what was derived from the old secret works until
// step 3, and what is derived from the new one works from step 1 on: exchange them in between.
// Equal rights have an equal text, and so an equal hash, before and after.
//
// # Guarantees
//
//   - TLS 1.3 only, both sides present a certificate, and no session is resumed: every connection
//     is a full handshake against the authorities and certificates of that moment.
//   - With a secret, a peer that is let in knows the root secret, an old one or one derived from
//     these, and uses the same cluster label.
//   - Tier and rights come from the verified chain alone. A capability text in a leaf means
//     nothing, and a derived certificate signs no other. A dialer refuses every server that is not
//     of the root tier, so that no guest can pose as an instance.
//   - With certificates of the user's own, a peer that is let in carries a listed name, on accepted
//     and on dialed connections, and in what GetConfigForClient returns. Only Config.TLS with a
//     VerifyConnection and no list is excepted: then that function decides.
//   - The authority depends on secret and cluster only, never on the version of Go or of this
//     package: its key is pinned by tests.
//   - A certificate that is handed out stays valid for six days more, and was valid 23 hours ago:
//     instances whose clocks differ by less than that accept each other. A node whose own clock is
//     stepped makes a new one. No certificate outlives the derived secret that has signed it.
//   - Secrets and keys are not printed or logged: [Source] and [SecretConfig] print without them,
//     under every verb.
//
// # Concurrency
//
// Everything is safe for concurrent use. There are no goroutines: certificates are renewed, and
// files looked at, by the handshake (or the call of ClientTLS, Peer or Recheck) that finds them
// old. The mutexes are never held across I/O; while one handshake reads files, which may hang, the
// others go on with what was read before. Stretched secrets are kept for the process, in the one
// package-level variable of this repository: bounded, and a function of its keys.
//
// # Failure
//
// A mistake in the configuration is an error of the constructor, all mistakes at once, by the name
// of the field. A file that is broken or missing later is reported once through slog, retried at
// most once a second, and the last good set stays in use, expired or not.
//
// # Limits
//
// The strength is the secret's. An attacker who can reach the port sees a certificate, and can try
// guesses against it offline, so a secret must be random. A generated one is. Others are estimated,
// and refused below 128 bits: by the alphabet and the number of characters that neither repeat
// earlier ones nor count up or down, and by the number of words if they look like words. The
// estimate finds the usual mistakes (one letter, 0123456789abcdef twice, a phrase) and is no proof.
//
// A certificate proves that a process may come in, and its tier and rights. It never proves which
// instance that is: all instances may share one, and the key that an ID is made of is proved on the
// connection behind TLS (internal/nodeid, transport). Every holder of the root secret can claim any
// name, become a voter by the group's rules, and derive secrets unseen. It cannot claim the ID of
// another instance.
//
// A derived secret is shut out before its end only by replacing the root secret. A connection does
// not end by itself when a certificate of it has expired or lost its authority: the caller asks
// [Source.Recheck]. Go's TLS client sends "bad certificate" to the server whatever it did not like,
// so that only the client's side knows whether it was the secret, the cluster or the clock.
//
// For dialed connections of FromFiles and of FromTLS with names, InsecureSkipVerify is set:
// crypto/tls can compare only one host name, and no URI. VerifyConnection does all that crypto/tls
// would have done, and the names. What GODEBUG=fips140=on adds to the chains that crypto/tls
// verifies (keys of approved kinds and sizes only) is not repeated there; it holds for accepted
// connections, for signatures, and for everything made from a secret: Ed25519, HKDF and PBKDF2 with
// SHA-256. The tests of this package pass with fips140=on, with fips140=only, and with the frozen
// module that GOFIPS140=v1.0.0 selects.
//
// # Refused alternative
//
// Pre-shared keys of TLS 1.3 would need no certificates, but crypto/tls has none. A common
// certificate for all nodes, or one derived from the secret, would never expire. Authorities that
// are derived from secret and capability text would have to be chosen by what a stranger's leaf
// says, and two guests of one text could pose as servers to each other. A list of guests on the
// instances would be state to agree on.
package credentials
