// Package capability describes which operations on keys are allowed to a peer that has a derived
// secret or a certificate with a listed name. It defines a short canonical text of these rights,
// and the checks against it.
//
//	mortise-capability/1
//	for cron-host
//	until 2027-01-01T00:00:00Z
//	lock cron/*
//	read cron/*
//
// Every line ends with a line feed. The order of the lines is: the version, the name for audit
// logs (required), the end (optional), and the rights, sorted bytewise without duplicates. A
// right is the word member, or one of the words read, write, lock and force followed by a
// pattern. A pattern is an exact key, or a prefix of keys followed by an asterisk. In names and
// patterns, these bytes are written as %XX, in upper case: the percent sign, a literal asterisk,
// and all bytes outside "!" to "~".
//
// # Guarantees
//
// A combination of rights, name and end has exactly one text, because [Parse] refuses every other
// spelling. So the hash of the text identifies the capability. A nil [*Capability] belongs to a
// full instance (a holder of the root secret) and allows everything. No text causes a panic.
//
// A member has the rights read, write and lock on every key. So a text with the word member must
// not contain these rights. The right force is never implied. Other overlaps (lock a and lock a*)
// are allowed and mean the union of the rights.
//
// # Concurrency
//
// A Capability is safe for concurrent use. The package has no state and reads no clock.
//
// # Limits
//
// A text has at most 64 lines and 4 KiB. A check compares the key with at most 14 patterns. This
// package does not check the end of a capability; crypto/x509 checks it, because the end is also
// the NotAfter of the certificate that contains the text.
package capability
