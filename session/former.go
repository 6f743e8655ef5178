package session

import (
	"crypto/ed25519"
	"encoding/binary"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// formerText makes the signature of a former instance useless for any other purpose.
const formerText = "mortise former instance v1\x00"

// FormerBytes is the length of a claim of ClaimFormer: a public key and a signature.
const FormerBytes = ed25519.PublicKeySize + ed25519.SignatureSize

// ClaimFormer returns the claim of an instance, to the leader of a group, that a former instance
// has ended. Only one that has the key of the former can make it, and no other instance can use it,
// nor the same one in another group. The result is nil for the zero key.
func ClaimFormer(former nodeid.Key, group uint64, by nodeid.ID) []byte {
	if former.ID().IsZero() {
		return nil
	}
	return append(append([]byte(nil), former.Public()...), former.Sign(formerMessage(group, by))...)
}

// NamedFormer returns the ID that a claim names, or zero if the claim has not the right length. It
// checks no signature, and so proves nothing.
func NamedFormer(claim []byte) nodeid.ID {
	if len(claim) != FormerBytes {
		return nodeid.ID{}
	}
	return nodeid.Of(claim[:ed25519.PublicKeySize])
}

// ProvenFormer reports whether a claim, which the instance by has sent, is signed by the instance
// that it names, for this instance and this group.
func ProvenFormer(claim []byte, group uint64, by nodeid.ID) bool {
	return len(claim) == FormerBytes && nodeid.Verify(claim[:ed25519.PublicKeySize], formerMessage(group, by),
		claim[ed25519.PublicKeySize:])
}

func formerMessage(group uint64, by nodeid.ID) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(formerText), group), by[:]...)
}
