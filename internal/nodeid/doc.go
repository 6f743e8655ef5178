// Package nodeid defines the IDs of incarnations and the keys that prove them.
//
// An instance makes an Ed25519 key for each of its incarnations. The ID is the first 16 bytes of a
// hash of the public key. So only the holder of the private key can claim an ID, and a check needs
// no stored state: the receiver of a key computes the ID. An ID is never sent beside a key. Finding
// a second key for an existing ID takes 2^128 attempts. Finding two keys with one ID takes 2^64,
// and does not let their owner impersonate another instance.
//
// Raft IDs, group IDs and session numbers have 64 bits: they are used only where the peer is
// already authenticated.
//
// All types are values and safe for concurrent use.
//
// Refused alternative: a 64-bit name with the full key pinned beside it. Any code that forgot to
// check the pin would accept an impostor.
package nodeid
