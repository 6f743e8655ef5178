package session

import (
	"errors"
	"fmt"
)

// ErrNotAllowed says that the secret or certificate of the caller does not grant what it asked for;
// the error is a *NotAllowedError.
var ErrNotAllowed = errors.New("mortise: not allowed")

// NotAllowedError says which right is missing. It is ErrNotAllowed for errors.Is.
type NotAllowedError struct {
	Verb string // the right that is needed: read, write, lock or force; or "root", which no derived secret grants
	Key  string // the key, or a prefix followed by *; empty if the right is for no key
	For  string // the name in the capability, as mortise secret -for gave it
}

// Error names the right, the key and the name, and what to do.
func (e *NotAllowedError) Error() string {
	if e.Verb == "root" {
		return fmt.Sprintf("mortise: not allowed: the derived secret for %q cannot do this: use the root secret", e.For)
	}
	return fmt.Sprintf("mortise: not allowed: the derived secret for %q does not grant %s on %q: derive one that does with mortise secret -allow",
		e.For, e.Verb, e.Key)
}

// Is reports whether target is ErrNotAllowed.
func (e *NotAllowedError) Is(target error) bool { return target == ErrNotAllowed }
