package fence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise"
)

// Store remembers the highest token of each resource. [Mark], [Table] and [Files] are stores. The
// package fencetest tests other implementations.
type Store interface {
	// Advance returns nil and records token if no higher token of the resource was recorded; the
	// same token is admitted any number of times. Otherwise it returns a *StaleError and changes
	// nothing. ErrBadToken and ErrBadResource mean that an argument is invalid. After any other
	// error, token may or may not be recorded, and a retry is safe. ctx limits how long Advance
	// waits. Advance must be safe for concurrent use.
	Advance(ctx context.Context, resource string, token mortise.Token) error
}

// Section is a [Store] that can also exclude older holders while a newer holder writes.
type Section interface {
	Store

	// Do advances the mark as Advance does and then runs fn. When fn starts, no fn of a lower token
	// is still running, and none starts later. Do returns the error of fn, or the reason why fn did
	// not run. A higher token may end the context of fn early, with a *StaleError as the cause.
	Do(ctx context.Context, resource string, token mortise.Token, fn func(context.Context) error) error
}

var (
	// ErrStale means that a higher token has been seen. The type of the error is [*StaleError].
	ErrStale = errors.New("fence: the token is stale")
	// ErrBadToken means that a value is not a fencing token. Tokens are 1 to 2^63-1.
	ErrBadToken = errors.New("fence: not a token")
	// ErrBadResource means that a text is not the name of a resource. Names are 1 to 512 bytes of
	// UTF-8 without control characters, like the keys of locks.
	ErrBadResource = errors.New("fence: not a resource")
	// ErrNoToken means that a token is required, but the context or the request carries no token.
	ErrNoToken = errors.New("fence: no token")
)

// StaleError means that a token was refused because its owner no longer holds the lock. Discard the
// write and do not retry. errors.Is(err, ErrStale) reports true.
type StaleError struct {
	Resource string        // the resource to be written
	Token    mortise.Token // the token that was refused
	Highest  mortise.Token // the highest token that has been seen
	// Forgotten means that the [Mark] does not remember the resource. Highest is then the floor of
	// the Mark. The refused token may still be the newest token of the resource. A new grant of the
	// lock gets a token that is admitted.
	Forgotten bool
}

func (e *StaleError) Error() string {
	if e.Forgotten {
		return fmt.Sprintf("fence: token %d of %q is older than %d, the lowest admitted for an unknown resource", e.Token,
			e.Resource, e.Highest)
	}
	return fmt.Sprintf("fence: token %d of %q is older than %d, the highest seen", e.Token, e.Resource, e.Highest)
}

func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Int64 converts a token to the integer type of databases. It fails with ErrBadToken for 0 and for
// tokens above 2^63-1.
func Int64(token mortise.Token) (int64, error) {
	if token == 0 || token > math.MaxInt64 {
		return 0, fmt.Errorf("%w: %d is not between 1 and %d", ErrBadToken, uint64(token), int64(math.MaxInt64))
	}
	return int64(token), nil
}

const tokenDigits = 19

// ParseToken parses a token in a header: decimal digits only, without leading zeros. For any other
// text it fails with ErrBadToken. The error contains at most 32 bytes of text.
func ParseToken(text string) (mortise.Token, error) {
	if len(text) > tokenDigits || text == "" || text[0] == '0' {
		return 0, fmt.Errorf("%w: %.32q", ErrBadToken, text)
	}
	n, err := strconv.ParseUint(text, 10, 63) // refuses signs, spaces and underscores
	if err != nil {
		return 0, fmt.Errorf("%w: %.32q", ErrBadToken, text)
	}
	return mortise.Token(n), nil
}

// FormatToken returns the text that ParseToken parses.
func FormatToken(token mortise.Token) string { return strconv.FormatUint(uint64(token), 10) }

const maxResource = 512

func check(resource string, token mortise.Token) error {
	if _, err := Int64(token); err != nil {
		return err
	}
	return checkName(resource)
}

func checkName(resource string) error {
	if resource == "" || len(resource) > maxResource || !utf8.ValidString(resource) {
		return fmt.Errorf("%w: %.32q (%d bytes)", ErrBadResource, resource, len(resource))
	}
	for _, r := range resource {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: %.32q has a control character", ErrBadResource, resource)
		}
	}
	return nil
}
