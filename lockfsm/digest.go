package lockfsm

import (
	"encoding/binary"
	"math/bits"
)

// The digest lets replicas compare their states cheaply. It has two parts.
//
// The chain is a hash over all commands that took a revision, and their results, in order. The
// other commands change nothing. So it differs from the first command that one replica reads or
// answers differently, and remains different. A snapshot contains it, because a replica that
// restores the snapshot has not seen the commands.
//
// The sum adds the hashes of what exists: sessions, data, and the entries of all queues with their
// modes and tokens. A command adds and subtracts only what it changes. A snapshot does not contain
// the sum: Restore computes it from what it has read. So a state that lost or changed an entry on
// its way through a snapshot differs at once, without any command that touches the entry.
//
// Neither part is a cryptographic hash. A voter that lies is outside of what a group tolerates.

// The odd constants are digits of pi. They have no other meaning.
const (
	hash0 = 0x243f6a8885a308d3
	hash1 = 0x13198a2e03707345
	hash2 = 0xa4093822299f31d1
)

type digest struct {
	chain  uint64
	sum    uint64
	folded Revision // the revision after the last command in chain
}

func (d *digest) add(hash uint64)  { d.sum += hash }
func (d *digest) drop(hash uint64) { d.sum -= hash }

// restored sets the chain of a snapshot, which was taken at a revision.
func (d *digest) restored(chain uint64, rev Revision) { d.chain, d.folded = chain, rev }

func mixed(a, b uint64) uint64 {
	high, low := bits.Mul64(a^hash0, b^hash1)
	return high ^ low
}

// Digest returns a hash of the state. Replicas that have applied the same entries have the same
// Digest, also if one of them has restored a snapshot since. It takes constant time.
func (m *Machine) Digest() uint64 { return mixed(m.digest.chain^uint64(m.rev), m.digest.sum) }

// fold adds a command and its result to the chain, if the command has changed the state: if it has
// taken the revision.
func (d *digest) fold(command []byte, res *Result, rev Revision) {
	if rev == d.folded {
		return
	}
	d.folded = rev
	h := d.chain ^ uint64(len(command))
	for ; len(command) > 16; command = command[16:] {
		h = mixed(h^binary.LittleEndian.Uint64(command), binary.LittleEndian.Uint64(command[8:]))
	}
	if n := len(command); n >= 8 {
		h = mixed(h^binary.LittleEndian.Uint64(command), binary.LittleEndian.Uint64(command[n-8:]))
	} else {
		var last [8]byte
		copy(last[:], command)
		h ^= binary.LittleEndian.Uint64(last[:])
	}
	for i := range res.Fired {
		c := &res.Fired[i]
		h = mixed(h^uint64(c.Session)^uint64(c.Token)*hash2, uint64(c.Number)^uint64(c.Watch)*hash2)
	}
	h = mixed(h^uint64(res.Token)^uint64(res.Code)<<56, uint64(rev)^uint64(res.Watch)*hash2)
	d.chain = h
}
