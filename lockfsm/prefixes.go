package lockfsm

import (
	"slices"
	"strings"
)

// Prefixes is a set of prefixes of keys, made by [NewPrefixes]. A set without prefixes covers no
// key.
type Prefixes []string

// NewPrefixes returns the set of the given prefixes, without those that another one covers. It
// keeps no reference to the slice.
func NewPrefixes(of ...string) Prefixes {
	sorted := slices.Sorted(slices.Values(of))
	kept := sorted[:0]
	for _, each := range sorted {
		if len(kept) == 0 || !strings.HasPrefix(each, kept[len(kept)-1]) {
			kept = append(kept, each)
		}
	}
	return slices.Clip(kept)
}

// Cover reports whether the key begins with one of the prefixes. No prefix of the set begins
// another one, so only the last one that is not above the key can begin it.
func (p Prefixes) Cover(key string) bool {
	at, found := slices.BinarySearch(p, key)
	return found || at > 0 && strings.HasPrefix(key, p[at-1])
}
