package credentials

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

const (
	rootPrefix    = "msk1_" // followed by 256 random bits and a checksum, in hexadecimal
	derivedPrefix = "msd1_" // prefix of a derived secret, see derive.go

	randomBytes   = 32
	checksumBytes = 4
)

var errChecksum = errors.New("its checksum is wrong: the secret was cut off or mistyped; copy the whole " +
	"line that the command mortise secret has printed")

// GenerateSecret returns a new root secret: msk1_, 256 random bits, and a checksum that detects a
// truncated secret. It is safe for concurrent use.
func GenerateSecret() string {
	random := make([]byte, randomBytes)
	_, _ = rand.Read(random) // never fails: on an error the process ends
	return rootPrefix + hex.EncodeToString(append(random, checksum(rootPrefix, random)...))
}

// checksum detects typing and copying mistakes. It does not protect against an attacker.
func checksum(prefix string, payload []byte) []byte {
	sum := sha256.Sum256(append([]byte("mortise checksum v1\x00"+prefix), payload...))
	return sum[:checksumBytes]
}

// IsDerived reports whether text looks like a derived secret.
func IsDerived(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), derivedPrefix) }

func generated(secret string) (bool, error) {
	digits, ok := strings.CutPrefix(secret, rootPrefix)
	if !ok {
		return false, nil
	}
	text, err := hex.DecodeString(digits)
	if err != nil || len(text) != randomBytes+checksumBytes || digits != strings.ToLower(digits) ||
		string(checksum(rootPrefix, text[:randomBytes])) != string(text[randomBytes:]) {
		return true, errChecksum
	}
	return true, nil
}
