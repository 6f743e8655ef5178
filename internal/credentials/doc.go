// Package credentials makes the TLS configurations of a node, and determines the rights of a
// verified peer. Its input is a root secret that all instances share, a secret derived from a root
// secret, the user's own TLS configuration, or files that may be replaced while the node runs.
//
// # Secrets and certificates
//
// A [Source] returns one configuration for accepted and one for dialed connections. It also
// determines the [Peer] at the other end of a connection. [FromSecret] needs no PKI:
//
//	root secret, Config.Cluster
//	    --HKDF-SHA256--> Ed25519 key: the cluster's authority, the same on every instance
//	Config.OldSecrets
//	    --HKDF-SHA256--> Ed25519 keys: authorities that are trusted too
//	random key of this process
//	    --signed by the authority--> this node's certificate, valid for 7 days, renewed after one
//
// A secret from [GenerateSecret] (msk1_, 256 random bits, a checksum) is used directly. Any other
// secret is first stretched by 200,000 rounds of PBKDF2-SHA256 with the label in the salt, once in
// a process.
//
// [DeriveSecret] makes a secret with fewer rights (msd1_): an intermediate certificate with its
// key, signed by the authority. The certificate contains a capability text (see
// internal/capability). The holder signs its own leaf certificate with the key. No instance stores
// derived secrets.
//
//	chain                      tier
//	leaf, authority            Root: may found, vote, answer and serve
//	leaf, derived, authority   Member if the text of the derived certificate says member, otherwise
//	                           Guest; both may only dial
//	anything else              refused
//
// A certificate made from a secret has one name, a hash of the cluster's label and of the public
// key of the authority, which only the holders of a secret know. Peers check this name, so host
// names and addresses do not matter. [FromTLS] checks and hardens the user's configuration.
// [FromFiles] reads a certificate, a key and authorities from files, and reads the files again when
// they change. For both, [Names] lists the names of instances (Root), and the names of guests with
// their rights.
//
// # How a secret is replaced
//
// A secret is replaced in three rolling deploys. Each deploy must be complete before the next
// begins:
//
//	        Secret   OldSecrets
//	start   old      -
//	1.      old      new         every instance trusts the new secret, none uses it yet
//	2.      new      old         the instances use the new secret, one after the other
//	3.      new      -           the old secret, and all derived from it, is worthless
//
// Only instances in the same step or in neighboring steps are guaranteed to accept each other. If
// the old secret has leaked, its holders are excluded only by step 3.
//
// The holder of a derived secret trusts only the authority of its root secret, and names this
// authority in the server name (SNI). An instance has a certificate of that authority as long as
// the root secret is in Secret or OldSecrets. So secrets derived from the old secret work until
// step 3, and secrets derived from the new secret work from step 1 on. Replace derived secrets
// between these steps.
//
// # Guarantees
//
//   - Connections use TLS 1.3 only, both sides present a certificate, and every connection needs
//     a full handshake with the current authorities and certificates.
//   - With a secret, an accepted peer has the root secret, an old secret or a secret derived from
//     one of them, and uses the same cluster label.
//   - Tier and rights depend only on the verified chain. A capability text in a leaf certificate
//     is ignored, and a derived certificate cannot sign another derived certificate. A dialer
//     refuses every server that is not of the root tier, so no guest can pose as an instance.
//   - With the user's own certificates, an accepted peer has a listed name. Both sides check the
//     names, even with the configurations that GetConfigForClient returns. The only exception is
//     a Config.TLS with a VerifyConnection and without a list of names: then VerifyConnection
//     decides.
//   - The key of the authority depends only on the secret and the cluster, never on the version
//     of Go or of this package.
//   - With a secret, a node presents only a certificate that has been valid for at least 23 hours
//     and remains valid for at least six days. So instances accept each other if their clocks
//     differ by less than 23 hours. No certificate is valid longer than the derived secret that
//     has signed it.
//   - [Source] and [SecretConfig] never print or log secrets and keys, whatever the formatting
//     verb.
//
// # Concurrency
//
// All functions and methods are safe for concurrent use. There are no goroutines: certificates are
// renewed, and files are checked, during a handshake or a call of ClientTLS, Peer or Recheck. No
// mutex is held during I/O. While one handshake reads files, other handshakes use the previous
// content.
//
// # Failure
//
// The constructors report all mistakes in the configuration, with the names of the fields. If a
// file is broken or missing later, this is logged once, and the files are read again at most once a
// second. Meanwhile the last usable set of files is used, even if it has expired.
//
// # Limits
//
// An attacker that can reach the port receives a certificate, and can use it to test guesses of the
// secret offline. So a secret must be random, as generated secrets are. Other secrets are refused
// if their estimated strength (estimate.go) is below 128 bits. The estimate proves nothing.
//
// A certificate proves tier and rights, never which instance a process is. All instances may share
// a certificate, and the key of an instance ID is proved on the connection after TLS
// (internal/nodeid, transport). Every holder of the root secret can claim any name, become a voter
// by the group's rules, and derive secrets unnoticed. It cannot claim the ID of another instance.
//
// A derived secret can be revoked before its end only by replacing the root secret. An open
// connection does not end when a certificate expires or an authority is removed, so the caller must
// call [Source.Recheck]. Go's TLS client sends the alert "bad certificate" for every cause, so only
// the client can report whether the secret, the cluster or the clock is the cause.
//
// FromFiles, and FromTLS with names, set InsecureSkipVerify for dialed connections, because
// crypto/tls compares only a single host name, and no URI. VerifyConnection then performs all
// checks of crypto/tls except one, and checks the names. The exception: with GODEBUG=fips140=on
// crypto/tls restricts the keys in chains to approved kinds and sizes. This restriction still
// applies to accepted connections and to everything made from a secret.
//
// # Refused alternative
//
// Pre-shared keys of TLS 1.3 are not supported by crypto/tls. One common certificate for all nodes
// would have to be valid forever. If authorities were derived from the secret and the capability
// text, an unverified leaf certificate would choose the authority. A list of guests would have to
// be equal on all instances.
package credentials
