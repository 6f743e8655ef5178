package capability

import (
	"crypto/sha256"
	"time"
)

// Verb is a kind of operation on a key.
type Verb uint8

// The verbs of a capability. A non-nil Capability never allows the zero Verb.
const (
	Read  Verb = iota + 1 // read a key: its holders, its queue, its data
	Write                 // change the data of a key
	Lock                  // acquire a key
	Force                 // end another session's hold of a key; also needs Read
)

// String returns the word for v in a capability text.
func (v Verb) String() string {
	switch v {
	case Read:
		return "read"
	case Write:
		return "write"
	case Lock:
		return "lock"
	case Force:
		return "force"
	}
	return "none"
}

// Capability is an immutable set of rights. [Parse] and [Build] make one. A nil Capability allows
// everything.
type Capability struct {
	text   string
	hash   [sha256.Size]byte
	name   string
	until  time.Time
	member bool
	rights [Force + 1]patterns // by verb
}

// Text returns the canonical text, or "" for nil.
func (c *Capability) Text() string {
	if c == nil {
		return ""
	}
	return c.text
}

// String returns the canonical text, or a description for nil.
func (c *Capability) String() string {
	if c == nil {
		return "everything (full instance)"
	}
	return c.text
}

// Hash returns the SHA-256 of the canonical text, or zero for nil.
func (c *Capability) Hash() [sha256.Size]byte {
	if c == nil {
		return [sha256.Size]byte{}
	}
	return c.hash
}

// For returns the decoded name for audit logs, or "" for nil.
func (c *Capability) For() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Until returns the end of the capability in UTC, in whole seconds. Zero means that there is no
// end.
func (c *Capability) Until() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.until
}

// Member reports whether the holder of c may embed the library and appear in the session table. It
// returns false for nil, which has more rights than a member.
func (c *Capability) Member() bool { return c != nil && c.member }

// Allows reports whether verb is granted on the given key. Nil allows everything.
func (c *Capability) Allows(verb Verb, key string) bool {
	if c == nil || c.member && verb != Force && verb != 0 {
		return true
	}
	return verb <= Force && c.rights[verb].match(key)
}

// AllowsPrefix reports whether verb is granted on every key that begins with prefix. A single
// granted pattern must cover all these keys. The empty prefix means all keys. Nil allows
// everything.
func (c *Capability) AllowsPrefix(verb Verb, prefix string) bool {
	if c == nil || c.member && verb != Force && verb != 0 {
		return true
	}
	return verb <= Force && c.rights[verb].cover(prefix)
}

// Sees reports whether the state of the key may be shown. Each of the rights read, write and lock
// is sufficient. Nil allows everything.
func (c *Capability) Sees(key string) bool {
	return c.Allows(Read, key) || c.Allows(Lock, key) || c.Allows(Write, key)
}

// Ends reports whether another session's hold of the key may be ended. This needs both force and
// read. Nil allows everything.
func (c *Capability) Ends(key string) bool { return c.Allows(Force, key) && c.Allows(Read, key) }
