package nodeid

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
)

// SeedSize is the length of the result of Key.Seed in bytes.
const SeedSize = ed25519.SeedSize

// ErrSeed means that a seed has the wrong length.
var ErrSeed = errors.New("the private key of an instance has 32 bytes")

// Key is the private key of one incarnation. No verb of package fmt prints the private key. The
// zero Key has the zero ID and cannot sign.
type Key struct {
	id      ID
	private ed25519.PrivateKey
}

// NewKey makes a key from 32 bytes that the function random fills in. These bytes must come from a
// secure source.
func NewKey(random func([]byte)) Key {
	seed := make([]byte, SeedSize)
	random(seed)
	return fromSeed(seed)
}

// ParseKey returns the key with the given seed. It does not keep the slice.
func ParseKey(seed []byte) (Key, error) {
	if len(seed) != SeedSize {
		return Key{}, ErrSeed
	}
	return fromSeed(seed), nil
}

func fromSeed(seed []byte) Key {
	private := ed25519.NewKeyFromSeed(seed)
	return Key{id: Of(private.Public().(ed25519.PublicKey)), private: private}
}

// ID returns the ID of the public key.
func (k Key) ID() ID { return k.id }

// Public returns the public key, which must not be changed. It is nil for the zero Key.
func (k Key) Public() ed25519.PublicKey {
	if k.private == nil {
		return nil
	}
	return k.private.Public().(ed25519.PublicKey)
}

// Seed returns a copy of the seed, which is secret. It is nil for the zero Key.
func (k Key) Seed() []byte {
	if k.private == nil {
		return nil
	}
	return k.private.Seed()
}

// Sign signs message. It returns nil for the zero Key.
func (k Key) Sign(message []byte) []byte {
	if k.private == nil {
		return nil
	}
	return ed25519.Sign(k.private, message)
}

// Verify reports whether signature is a valid signature of message for the key public.
func Verify(public ed25519.PublicKey, message, signature []byte) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, message, signature)
}

// Format prints the ID of k and never the key, for every verb.
func (k Key) Format(out fmt.State, _ rune) { fmt.Fprintf(out, "key of instance %s", k.id) }

// LogValue returns the result of Format for slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(k)) }
