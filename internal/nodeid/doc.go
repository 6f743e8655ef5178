// Package nodeid defines the IDs of incarnations and the keys that prove them.
//
// An instance makes an Ed25519 key for each of its incarnations. The ID is the first 16 bytes of a
// hash of the public key. So only the holder of the private key can prove an ID, and a check needs
// no stored state: the receiver of a key computes the ID. A second key for an existing ID takes
// 2^128 attempts. Two keys with the same ID take 2^64 attempts, and do not let their owner
// impersonate another instance.
//
// Raft IDs, group IDs and session numbers have only 64 bits, because only authenticated peers use
// them.
//
// All types are values and safe for concurrent use.
//
// Refused alternative: a 64-bit ID with the full key stored beside it. Code that does not compare
// the stored key would accept an impostor.
package nodeid
