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

// Store remembers for each resource the highest token that it has seen. [Mark], [Table] and [Files]
// are stores; fencetest.Run says whether another one is.
type Store interface {
	// Advance returns nil if no higher token of the resource has been seen, and remembers token;
	// the same token is admitted any number of times. Otherwise it returns a *StaleError and
	// changes nothing. ErrBadToken and ErrBadResource say that the question was none. After any
	// other error token may have been remembered or not; asking again is safe. ctx bounds the wait.
	// Safe for concurrent use.
	Advance(ctx context.Context, resource string, token mortise.Token) error
}

// Section is a [Store] that can also keep holders apart for as long as they write.
type Section interface {
	Store

	// Do advances the mark as Advance does and then runs fn, so that no fn of a lower token is
	// still running when fn starts, and none starts later. It returns the error of fn, or why fn
	// did not run. The context of fn may end early, with a *StaleError as its cause, when a higher
	// token has been seen.
	Do(ctx context.Context, resource string, token mortise.Token, fn func(context.Context) error) error
}

var (
	// ErrStale says that a higher token has been seen; it comes as a [*StaleError].
	ErrStale = errors.New("fence: the token is stale")
	// ErrBadToken says that something is no fencing token: those are positive and fit into 63 bits.
	ErrBadToken = errors.New("fence: not a token")
	// ErrBadResource says that something cannot name a resource: 1 to 512 bytes of UTF-8 without
	// control characters, as a lock's key.
	ErrBadResource = errors.New("fence: not a resource")
	// ErrNoToken says that a context or a request that has to carry a token carries none.
	ErrNoToken = errors.New("fence: no token")
)

// StaleError is the refusal of a token: whoever holds it is no longer the holder of the lock,
// whatever it believes. Retrying does not help; what it was about to write has to be thrown away.
// errors.Is matches ErrStale.
type StaleError struct {
	Resource string        // what was to be written
	Token    mortise.Token // the token that was refused
	Highest  mortise.Token // the highest that has been seen
	// Forgotten says that the resource itself is not remembered, and Highest is the floor of the
	// [Mark] instead: the token may be the newest all the same, and a new grant of the lock is
	// admitted.
	Forgotten bool
}

func (e *StaleError) Error() string {
	if e.Forgotten {
		return fmt.Sprintf("fence: token %d of %q is older than %d, below which nothing is remembered", e.Token,
			e.Resource, e.Highest)
	}
	return fmt.Sprintf("fence: token %d of %q is older than %d, the highest seen", e.Token, e.Resource, e.Highest)
}

func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Int64 converts a token to what a database stores. It fails with ErrBadToken for 0, which is no
// token, and for what does not fit, which no group grants before 2109.
func Int64(token mortise.Token) (int64, error) {
	if token == 0 || token > math.MaxInt64 {
		return 0, fmt.Errorf("%w: %d is not between 1 and %d", ErrBadToken, uint64(token), int64(math.MaxInt64))
	}
	return int64(token), nil
}

// tokenDigits is how many digits the highest token has.
const tokenDigits = 19

// ParseToken reads a token as it travels in headers: decimal digits and nothing else, without
// leading zeros. It fails with ErrBadToken, and repeats at most 32 bytes of what it was given.
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

// FormatToken is the text that ParseToken reads.
func FormatToken(token mortise.Token) string { return strconv.FormatUint(uint64(token), 10) }

// maxResource is how many bytes the name of a resource may have: as many as a lock's key.
const maxResource = 512

// check says whether a store may be asked about a token of a resource.
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
