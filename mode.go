package mortise

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/modes"
)

// Mode is how a request locks a key. The zero Mode is Exclusive. Modes are compared with ==.
//
// Requests of all modes wait in one queue per key, and are granted in the order of the queue. The
// requests at the head of the queue that are compatible hold the lock together. So a waiting
// exclusive request blocks later shared requests, and a request for few permits never overtakes a
// request for many.
type Mode uint64

const (
	// Exclusive excludes all other requests.
	Exclusive Mode = iota
	// Shared excludes only exclusive requests, like the lock of a reader.
	Shared
	// Upgradable excludes exclusive and other upgradable requests, but not shared ones.
	// [Lock.Upgrade] makes it exclusive for a while. It is for a holder that reads first, and then
	// decides whether to write.
	Upgradable
)

// Permits returns the mode of a semaphore: the request takes n permits out of a total, 1 <= n <= of
// <= 1<<30. A shared request takes one permit of any total. All requests for a key should name the
// same total. If they do not, the smallest total among the holders counts, so the total can be
// changed while the group runs. Permits(1, 1) is Exclusive. With wrong numbers the Mode is invalid:
// a request with it fails with ErrBadRequest, and the error names them.
func Permits(n, of int) Mode { return Mode(modes.Permits(n, of)) }

// String returns "exclusive", "shared", "upgradable", permits such as "2 of 5", or why the mode is
// invalid.
func (m Mode) String() string {
	if err := modes.Mode(m).Check(); err != nil {
		return "invalid: " + err.Error()
	}
	return modes.Mode(m).Text()
}

// MarshalText returns the text of String. For an invalid mode it returns ErrBadRequest.
func (m Mode) MarshalText() ([]byte, error) {
	if err := modes.Mode(m).Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	return []byte(modes.Mode(m).Text()), nil
}

// UnmarshalText parses the text of a valid mode. For any other text it returns ErrBadRequest.
func (m *Mode) UnmarshalText(text []byte) error {
	parsed, err := modes.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	*m = Mode(parsed)
	return nil
}

// Part is a further key of a request, see [Request.Also].
type Part struct {
	Key  string // as Request.Key
	Mode Mode   // as Request.Mode
	Tree bool   // as Request.Tree
}
