package nodeid

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Size is the length of an ID in bytes, in messages and on disk.
const Size = 16

// ID identifies one incarnation of an instance. The zero ID means none. IDs are opaque and
// comparable.
type ID [Size]byte

// ReplicaID is the raft ID of a replica. Zero means none. The ID is added to a configuration once
// and never used again, by any instance.
type ReplicaID = uint64

// Endpoint is an instance and its address. The address may be empty if a link exists already. The
// zero Endpoint means none.
type Endpoint struct {
	ID   ID
	Addr string // host:port
}

// Of returns the ID of a public key, or zero for a key of the wrong length.
func Of(public ed25519.PublicKey) ID {
	if len(public) != ed25519.PublicKeySize {
		return ID{}
	}
	sum := sha256.Sum256(append([]byte("mortise instance v1\x00"), public...))
	return ID(sum[:Size])
}

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders IDs by their bytes, like bytes.Compare.
func Compare(a, b ID) int { return bytes.Compare(a[:], b[:]) }

// String returns 32 hexadecimal digits, which Parse accepts.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Format prints the result of String for every verb. Otherwise %x would encode the digits again.
func (id ID) Format(out fmt.State, _ rune) { _, _ = io.WriteString(out, id.String()) }

// MarshalText returns the result of String, for JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText parses the result of MarshalText.
func (id *ID) UnmarshalText(text []byte) error {
	read, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = read
	return nil
}

// Parse parses 32 hexadecimal digits.
func Parse(text string) (ID, error) {
	var id ID
	if len(text) != hex.EncodedLen(Size) {
		return ID{}, fmt.Errorf("%.40q is no node ID: it must be %d hex digits", text, hex.EncodedLen(Size))
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return ID{}, fmt.Errorf("%.40q is no node ID: it must be %d hex digits", text, hex.EncodedLen(Size))
	}
	return id, nil
}

// FromBytes returns the ID with these 16 bytes, or false for any other number of bytes.
func FromBytes(b []byte) (ID, bool) {
	if len(b) != Size {
		return ID{}, false
	}
	return ID(b), true
}
