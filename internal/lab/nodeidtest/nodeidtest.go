// Package nodeidtest makes instance IDs for tests and simulations that need no keys.
package nodeidtest

import (
	"encoding/binary"
	"slices"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// ID returns an ID for a number. The IDs are in the order of the numbers. The ID of 0 is zero.
func ID(n uint64) nodeid.ID {
	var id nodeid.ID
	binary.BigEndian.PutUint64(id[nodeid.Size-8:], n)
	return id
}

// Number returns the number from which ID made id.
func Number(id nodeid.ID) uint64 { return binary.BigEndian.Uint64(id[nodeid.Size-8:]) }

// Key returns a key for a number, always the same key.
func Key(n uint64) nodeid.Key {
	return nodeid.NewKey(func(b []byte) { binary.BigEndian.PutUint64(b, n) })
}

// Ascending returns n keys in the order of their IDs.
func Ascending(n int) []nodeid.Key {
	keys := make([]nodeid.Key, 0, n)
	for i := range n {
		keys = append(keys, Key(uint64(i)+1))
	}
	slices.SortFunc(keys, func(a, b nodeid.Key) int { return nodeid.Compare(a.ID(), b.ID()) })
	return keys
}
