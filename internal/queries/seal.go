package queries

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"strings"
)

// A seal hides the key at which a page of a walk ends from a program that may not see it. Only the
// process that has sealed a key can open it. Another leader, or the same one after a restart, walks
// from the beginning again and skips what the program has seen, which the cursor's place tells. It
// is safe for concurrent use.
type seal struct{ aead cipher.AEAD }

const (
	sealMark = "\x00" // no key has control characters
	sealPad  = 256    // a sealed key is as long as others of about the same length
)

func newSeal() *seal {
	var key [32]byte
	_, _ = rand.Read(key[:])                       // never returns an error
	block, _ := aes.NewCipher(key[:])              // fails only for a key of another length
	aead, _ := cipher.NewGCMWithRandomNonce(block) // fails only for a block that is not of AES
	return &seal{aead}
}

func isSealed(key string) bool { return strings.HasPrefix(key, sealMark) }

// close returns a sealed key.
func (s *seal) close(key string) string {
	b := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
	b = append(b, make([]byte, -len(b)&(sealPad-1))...)
	return string(s.aead.Seal([]byte(sealMark), nil, b, nil))
}

// open returns the key that close has sealed. It returns another key as it is, and no key for one
// that another process has sealed.
func (s *seal) open(key string) string {
	if !isSealed(key) {
		return key
	}
	b, err := s.aead.Open(nil, nil, []byte(key[len(sealMark):]), nil)
	if err != nil {
		return ""
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return ""
	}
	return string(b[n : n+int(size)])
}
