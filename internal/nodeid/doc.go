// Package nodeid names the lives of instances and proves the names.
//
// An instance makes an Ed25519 key for each of its lives. The ID of the life is the first 16 bytes
// of a hash of the public key, so an ID can be claimed only by the holder of its private key, and
// nothing has to be remembered to check a claim: the receiver of a key computes the ID. An ID never
// travels beside a key. Finding a second key for an ID that exists takes 2^128 attempts, and two
// keys of one ID, which would help nobody but their maker, 2^64.
//
// Raft IDs, group IDs and session numbers stay 64 bits wide: they are names inside something that
// is already authenticated.
//
// All types are values and safe for concurrent use.
//
// Refused alternative: a 64-bit name with the full key pinned beside it. Every place that forgot
// the pin would accept an impostor.
package nodeid
