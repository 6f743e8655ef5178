package mortise

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/lockfsm"
)

// maxShownKey is how many bytes of a key an error shows.
const maxShownKey = 64

// shownKey is a key as errors show it. One that is too long to be a key is cut.
func shownKey(key string) string {
	if len(key) <= int(lockfsm.DefaultLimits().KeyBytes) {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(key[:maxShownKey], "?"), len(key))
}

// badKey says which rule a key breaks; nil: none.
func badKey(key string) error {
	limit := int(lockfsm.DefaultLimits().KeyBytes)
	rule := ""
	switch {
	case key == "":
		rule = "it is empty"
	case len(key) > limit:
		rule = fmt.Sprintf("it has %d bytes, at most %d are allowed", len(key), limit)
	case !utf8.ValidString(key):
		rule = "it is not UTF-8"
	case strings.ContainsFunc(key, unicode.IsControl):
		rule = "it has a control character"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrBadKey, shownKey(key), rule)
}

// badKeys is badKey for all keys of a request. A Resume that names no key is no exception.
func (r *Request) badKeys() error {
	if len(r.Keys) == 0 {
		return badKey(r.Key)
	}
	for _, key := range r.Keys {
		if err := badKey(key); err != nil {
			return err
		}
	}
	return nil
}
