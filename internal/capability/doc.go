// Package capability holds what a derived secret, or a certificate's name, is allowed to do with
// keys: a short canonical text and the checks that are made against it.
//
//	mortise-capability/1
//	for cron-host
//	until 2027-01-01T00:00:00Z
//	lock cron/*
//	read cron/*
//
// Every line ends with a line feed. The lines stand in this order: the version, the name that audit
// logs show (required), the end (optional), then the rights, sorted bytewise, each once. A right is
// read, write, lock or force with a pattern, or the word member. A pattern is one exact key unless
// it ends in an asterisk; then it is every key that begins with what precedes the asterisk. Names
// and patterns show bytes outside "!" to "~", the percent sign and a literal asterisk as %XX, in
// upper case.
//
// # Guarantees
//
// One set of rights, name and end has exactly one text: [Parse] refuses every other spelling, so
// the hash of the text stands for the rights. A nil [*Capability] is that of a full instance (a
// holder of the root secret) and allows everything. Nothing here panics, whatever the text is.
//
// A member has read, write and lock on every key, so those rights beside the word member are
// refused as redundant; force is never implied. Other overlaps (lock a beside lock a*) are allowed
// and mean their union.
//
// # Concurrency
//
// A Capability is immutable and safe for concurrent use. The package has no state and reads no
// clock.
//
// # Limits
//
// A text has at most 64 lines and 4 KiB. The checks compare the key with each granted pattern in
// turn. The end is not checked here: it is the NotAfter of the certificate that carries the text,
// and crypto/x509 checks that.
package capability
