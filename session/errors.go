package session

import (
	"fmt"

	"github.com/mortise-lock/mortise/locker"
)

// ErrNotAllowed means that the caller's secret or certificate does not grant a right that the
// request needs. The error is a *NotAllowedError.
var ErrNotAllowed = locker.ErrNotAllowed

// NotAllowedError names the missing right. It matches ErrNotAllowed with errors.Is.
type NotAllowedError struct {
	Verb string // read, write, lock, force, or root; no derived secret grants root
	// Key is the key, or a prefix followed by *. It is empty if the right is not about a key, or if
	// it is missing on one of the keys of a hold of another program.
	Key string
	For string // the name in the capability, as given by mortise secret -for
}

func (e *NotAllowedError) Error() string {
	if e.Verb == "root" {
		return fmt.Sprintf("mortise: not allowed: the derived secret for %q cannot do this: use the root secret", e.For)
	}
	if e.Key == "" {
		return fmt.Sprintf("mortise: not allowed: the derived secret for %q does not grant %s on each key of the hold: "+
			"derive one that does with mortise secret -allow", e.For, e.verbs())
	}
	return fmt.Sprintf("mortise: not allowed: the derived secret for %q does not grant %s on %q: "+
		"derive one that does with mortise secret -allow", e.For, e.Verb, e.Key)
}

func (e *NotAllowedError) verbs() string {
	if e.Verb == "force" {
		return "read and force"
	}
	return e.Verb
}

// Is reports whether target is ErrNotAllowed.
func (e *NotAllowedError) Is(target error) bool { return target == ErrNotAllowed }
