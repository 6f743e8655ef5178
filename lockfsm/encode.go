package lockfsm

import "encoding/binary"

// The layout of a command, all integers as shortest uvarints:
//
//	size of what follows | rules | kind (1 byte) | session | epoch | number | fields of the kind
//
//	stamp     wall               raise     version
//	open      nonce (16 bytes) | ttl in ns | length, record
//	attach    nonce (16 bytes) | count | per range: first - last of the range before | last - first
//	expire    term
//	acquire   flags (1 byte, bit 0: try) | length, key
//	adopt     ttl in ns | length, settings
//	others    nothing
//
// The part up to number is the same at every rules version.

const tryFlag = 1

// Append appends the command with its size prefix to b, so that commands appended one after another form one log entry, to be taken
// apart by [Next]. It does not judge: what no machine would accept is encoded all the same and refused there.
func (c Command) Append(b []byte) []byte {
	start := len(b)
	b = append(b, 0) // the size, if it fits in one byte
	b = binary.AppendUvarint(b, uint64(max(c.Rules, 1)))
	b = append(b, byte(c.Kind))
	b = binary.AppendUvarint(b, uint64(c.Session))
	b = binary.AppendUvarint(b, uint64(c.Epoch))
	b = binary.AppendUvarint(b, uint64(c.Number))
	b = c.appendFields(b)
	size := uint64(len(b) - start - 1)
	if size < 0x80 {
		b[start] = byte(size)
		return b
	}
	n := uvarintLen(size)
	for range n - 1 {
		b = append(b, 0)
	}
	copy(b[start+n:], b[start+1:])
	binary.PutUvarint(b[start:], size)
	return b
}

func (c Command) appendFields(b []byte) []byte {
	switch c.Kind {
	case Stamp:
		return binary.AppendUvarint(b, uint64(c.WallUnixMS))
	case Raise:
		return binary.AppendUvarint(b, uint64(c.Version))
	case Open:
		b = append(b, c.Nonce[:]...)
		b = binary.AppendUvarint(b, uint64(c.TTL))
		b = binary.AppendUvarint(b, uint64(len(c.Record)))
		return append(b, c.Record...)
	case Attach:
		b = append(b, c.Nonce[:]...)
		b = binary.AppendUvarint(b, uint64(len(c.Live)))
		var last Number
		for _, r := range c.Live {
			b = binary.AppendUvarint(b, uint64(r.First-last))
			b = binary.AppendUvarint(b, uint64(r.Last-r.First))
			last = r.Last
		}
		return b
	case Expire:
		return binary.AppendUvarint(b, c.Term)
	case Acquire:
		var flags byte
		if c.Try {
			flags = tryFlag
		}
		b = append(b, flags)
		b = binary.AppendUvarint(b, uint64(len(c.Key)))
		return append(b, c.Key...)
	case Adopt:
		b = binary.AppendUvarint(b, uint64(c.TTL))
		b = binary.AppendUvarint(b, uint64(len(c.Settings)))
		return append(b, c.Settings...)
	}
	return b
}
