// Package keys builds keys of locks from parts, so that services that share a group agree on their
// form and do not lock each other's keys by accident:
//
//	key, err := keys.Join("orders", "order", id) // orders/order/42
//	lock, err := node.Lock(ctx, key)
//	...
//	all, err := keys.Prefix("orders", "order") // orders/order/, for Node.List, Node.Watch and rights
//
// The convention is {service}/{type}/{id}: the service that owns the resource, what it is, and
// which one. TUTORIAL.md describes it.
//
// # Guarantees
//
//   - Different lists of parts give different keys, and [Split] returns the parts of a key of Join.
//   - A key of Join is valid: 1 to 512 bytes of UTF-8 without control characters.
//   - A prefix matches exactly the keys of Join that begin with its parts and have more.
//
// A slash or a percent sign in a part, a control character, and each byte that is not UTF-8 is
// written as a percent sign with two hexadecimal digits, as in URLs. All other characters stay as
// they are.
//
// # Concurrency
//
// All functions are pure.
//
// # Failure
//
// Every error wraps [mortise.ErrBadKey], and names the part.
//
// # Refused alternatives
//
// Join does not shorten a long part by a hash, because the key in a log would not show what it is.
// A program that must lock such a name passes its own hash.
package keys

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise"
)

const (
	separator = '/'
	escape    = '%'
	maxBytes  = 512 // of a key
)

// Join returns the key with the given parts, at least one. A part must not be empty. It can be any
// other text, for example an ID that a user has chosen.
func Join(parts ...string) (string, error) {
	if len(parts) == 0 {
		return "", fmt.Errorf("%w: keys.Join without a part", mortise.ErrBadKey)
	}
	var key strings.Builder
	for i, part := range parts {
		if part == "" {
			return "", fmt.Errorf("%w: part %d of %.128q is empty", mortise.ErrBadKey, i+1, parts)
		}
		if i > 0 {
			key.WriteByte(separator)
		}
		write(&key, part)
		if key.Len() > maxBytes {
			return "", fmt.Errorf("%w: with part %d, %.64q, the key has more than %d bytes", mortise.ErrBadKey, i+1,
				part, maxBytes)
		}
	}
	return key.String(), nil
}

func write(key *strings.Builder, part string) {
	for len(part) > 0 {
		r, size := utf8.DecodeRuneInString(part)
		invalid := r == utf8.RuneError && size == 1
		if invalid || r == separator || r == escape || unicode.IsControl(r) {
			for i := range size {
				fmt.Fprintf(key, "%c%02X", escape, part[i])
			}
		} else {
			key.WriteString(part[:size])
		}
		part = part[size:]
	}
}

// Prefix returns the text with which all keys begin that Join makes from the given parts and at
// least one more. Without parts it returns the empty prefix, which matches every key.
func Prefix(parts ...string) (string, error) {
	if len(parts) == 0 {
		return "", nil
	}
	key, err := Join(parts...)
	return key + string(separator), err
}

// Split returns the parts of a key that Join has made. It fails for every other key.
func Split(key string) ([]string, error) {
	parts := strings.Split(key, string(separator))
	for i, text := range parts {
		part, ok := read(text)
		if !ok {
			return nil, fmt.Errorf("%w: part %d of %.128q was not made by keys.Join", mortise.ErrBadKey, i+1, key)
		}
		parts[i] = part
	}
	if again, err := Join(parts...); err != nil || again != key {
		return nil, fmt.Errorf("%w: %.128q was not made by keys.Join", mortise.ErrBadKey, key)
	}
	return parts, nil
}

func read(text string) (part string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != escape {
			b.WriteByte(text[i])
			continue
		}
		var c byte
		if i+2 >= len(text) {
			return "", false
		}
		if _, err := fmt.Sscanf(text[i+1:i+3], "%02X", &c); err != nil {
			return "", false
		}
		b.WriteByte(c)
		i += 2
	}
	return b.String(), true
}
