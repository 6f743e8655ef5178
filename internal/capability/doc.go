// Package capability describes what a derived secret, or a certificate's name, may do with keys: a
// short canonical text, and the checks against it.
//
//	mortise-capability/1
//	for cron-host
//	until 2027-01-01T00:00:00Z
//	lock cron/*
//	read cron/*
//
// Every line ends with a line feed. The order of the lines is: the version, the name that audit
// logs show (required), the end (optional), then the rights, sorted bytewise, each once. A right is
// read, write, lock or force with a pattern, or the word member. A pattern is one exact key, or a
// prefix of keys followed by an asterisk. In names and patterns, bytes outside "!" to "~", the
// percent sign and a literal asterisk are written as %XX, in upper case.
//
// # Guarantees
//
// One set of rights, name and end has exactly one text: [Parse] refuses every other spelling, so
// the hash of the text identifies the rights. A nil [*Capability] belongs to a full instance (a
// holder of the root secret) and allows everything. No text causes a panic.
//
// A member has read, write and lock on every key, so those rights together with the word member are
// refused as redundant. Force is never implied. Other overlaps (lock a and lock a*) are allowed and
// mean their union.
//
// # Concurrency
//
// A Capability is immutable and safe for concurrent use. The package has no state and reads no
// clock.
//
// # Limits
//
// A text has at most 64 lines and 4 KiB. The checks compare the key with each granted pattern in
// turn. This package does not check the end: it is the NotAfter of the certificate that contains
// the text, and crypto/x509 checks that.
package capability
