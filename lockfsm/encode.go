package lockfsm

import "encoding/binary"

// The layout of a command, all integers as shortest uvarints:
//
//	size of what follows | rules | kind (1 byte) | session | epoch | number | fields of the kind
//
//	stamp     wall               raise     version
//	open      nonce (16 bytes) | instance (16 bytes) | life | length, rights | ttl in ns |
//	          length, record
//	attach    nonce (16 bytes) | 2 * since, and 1 more with a former | with it: length, former |
//	          count |
//	          per range: first - last of the range before | last - first
//	expire    term | cause (1 byte; 0: the TTL has passed) | with a cause: length, record |
//	              length, value
//	acquire   flags (uvarint) | length, key | per flag, from bit 1 on, its fields:
//	              bit 0 try         nothing
//	              bit 1 mode        of all keys (1 byte), not X | of permits: permits | of
//	              bit 2 several     count | per key: length, key
//	              bit 3 owner       number
//	              bit 4 most        how many
//	              bit 5 value       length, value
//	              bit 6 notice      nothing
//	              bit 7 delay       in ms
//	              bit 8 takes up    token
//	              bit 9 sticky      nothing; at most with try and the mode IS
//	              bit 10 modes      a byte per key, not all the same; without mode, takes up, sticky
//	              bit 11 upgrade    nothing; only with owner and at most notice and inner
//	              bit 12 inner      number; only with upgrade
//	adopt     ttl in ns | budget of a session | budget of the group | length, settings
//	evict     token | length, key | length, record | length, value | length, rights
//	detach    length, value
//	put       nonce (16 bytes) | revision | length, key | length, value | token | length, lock
//	inuse     place | token
//	lapse     token | length, value
//	setvalue  opener | token | seq | length, key | length, value
//	reserve   count
//	refuse    count | per place: session | number | index of the key (1 byte)
//	lead      length, record | length, value
//	downgrade count | a mode (1 byte) per key
//	others    nothing
//
// The part up to number is the same at every rules version.

const (
	tryFlag     = 1
	modeFlag    = 2
	severalFlag = 4
	ownerFlag   = 8
	mostFlag    = 16
	valueFlag   = 32
	noticeFlag  = 64
	delayFlag   = 128
	takesUpFlag = 256
	stickyFlag  = 512
	modesFlag   = 1024
	upgradeFlag = 2048
	innerFlag   = 4096

	acquireFlags = 8191
)

// Append appends the command with its size prefix to b. Several appended commands form one log
// entry, which [Next] splits again. Append does not validate the command.
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
		b = append(append(b, c.Nonce[:]...), c.Opener.Instance[:]...)
		b = binary.AppendUvarint(appendString(binary.AppendUvarint(b, c.Life), c.openingRights()), uint64(c.TTL))
		return appendString(b, c.Record)
	case Attach:
		b = appendClaim(append(b, c.Nonce[:]...), c.Since, c.Former)
		b = binary.AppendUvarint(b, uint64(len(c.Live)))
		var last Number
		for _, r := range c.Live {
			b = binary.AppendUvarint(b, uint64(r.First-last))
			b = binary.AppendUvarint(b, uint64(r.Last-r.First))
			last = r.Last
		}
		return b
	case Expire:
		b = append(binary.AppendUvarint(b, c.Term), byte(c.Cause))
		if c.Cause == 0 {
			return b
		}
		return appendString(appendString(b, c.Record), c.Value)
	case Acquire:
		return c.appendAcquire(b)
	case Evict:
		b = appendString(binary.AppendUvarint(b, uint64(c.Token)), c.Key)
		return appendString(appendString(appendString(b, c.Record), c.Value), c.Rights)
	case Put:
		b = binary.AppendUvarint(append(b, c.Nonce[:]...), uint64(c.Revision))
		b = appendString(b, c.Key)
		b = appendString(b, c.Value)
		return appendString(binary.AppendUvarint(b, uint64(c.Token)), c.Lock)
	case InUse:
		return binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.Revision)), uint64(c.Token))
	case Lapse:
		return appendString(binary.AppendUvarint(b, uint64(c.Token)), c.Value)
	case SetValue:
		b = binary.AppendUvarint(binary.AppendUvarint(c.Opener.append(b), uint64(c.Token)), c.Seq)
		return appendString(appendString(b, c.Key), c.Value)
	case Reserve:
		return binary.AppendUvarint(b, uint64(c.Count))
	case Refuse:
		return c.appendProof(b)
	case Downgrade:
		return c.appendModes(binary.AppendUvarint(b, uint64(len(c.Modes))))
	case Detach:
		return appendString(b, c.Value)
	case Lead:
		return appendString(appendString(b, c.Record), c.Value)
	case Adopt:
		b = binary.AppendUvarint(b, uint64(c.TTL))
		b = binary.AppendUvarint(binary.AppendUvarint(b, c.SessionBytes), c.GroupBytes)
		b = binary.AppendUvarint(b, uint64(len(c.Settings)))
		return append(b, c.Settings...)
	}
	return b
}

func appendClaim(b []byte, since uint64, former []byte) []byte {
	if len(former) == 0 {
		return binary.AppendUvarint(b, since<<1)
	}
	return appendString(binary.AppendUvarint(b, since<<1|1), former)
}

func (c *Command) appendProof(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(c.Proof)))
	for _, p := range c.Proof {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.Session)), uint64(p.Number))
		b = append(b, p.Key)
	}
	return b
}

// openingRights returns Rights. If they are missing although Opener has a capability, it returns a
// text that no machine accepts, so that no session has more rights than its opener.
func (c *Command) openingRights() string {
	if c.Rights == "" && c.Opener.Capability != [32]byte{} {
		return "?"
	}
	return c.Rights
}

func (o *Opener) append(b []byte) []byte {
	b = append(b, o.Instance[:]...)
	if o.Capability == [32]byte{} {
		return append(b, 0)
	}
	return append(append(b, 1), o.Capability[:]...)
}

func (c Command) appendAcquire(b []byte) []byte {
	flags := c.acquireFlags()
	b = binary.AppendUvarint(b, flags)
	b = appendString(b, c.Key)
	if flags&^tryFlag == 0 {
		return b
	}
	if flags&modeFlag != 0 {
		b = appendMode(b, c.Mode, c.Permits, c.Of)
	}
	if flags&severalFlag != 0 {
		b = binary.AppendUvarint(b, uint64(len(c.Keys)))
		for _, key := range c.Keys {
			b = appendString(b, key)
		}
	}
	if flags&ownerFlag != 0 {
		b = binary.AppendUvarint(b, uint64(c.Owner))
	}
	if flags&mostFlag != 0 {
		b = binary.AppendUvarint(b, uint64(c.Most))
	}
	if flags&valueFlag != 0 {
		b = binary.AppendUvarint(b, uint64(len(c.Value)))
		b = append(b, c.Value...)
	}
	if flags&delayFlag != 0 {
		b = binary.AppendUvarint(b, uint64(c.Delay.Milliseconds()))
	}
	if flags&takesUpFlag != 0 {
		b = binary.AppendUvarint(b, uint64(c.Token))
	}
	b = c.appendModes(b)
	if flags&innerFlag != 0 {
		b = binary.AppendUvarint(b, uint64(c.Inner))
	}
	return c.appendLater(b)
}

func (c *Command) appendModes(b []byte) []byte {
	for _, mode := range c.Modes {
		b = append(b, byte(mode))
	}
	return b
}

func (c *Command) acquireFlags() (flags uint64) {
	flags = c.laterFlags()
	if c.Try {
		flags |= tryFlag
	}
	if c.Mode != ModeX {
		flags |= modeFlag
	}
	if len(c.Keys) > 0 {
		flags |= severalFlag
	}
	if c.Owner > 0 {
		flags |= ownerFlag
	}
	if c.Most > 0 {
		flags |= mostFlag
	}
	if len(c.Value) > 0 {
		flags |= valueFlag
	}
	if c.Notice {
		flags |= noticeFlag
	}
	if c.Delay != 0 {
		flags |= delayFlag
	}
	if c.Token != 0 {
		flags |= takesUpFlag
	}
	if c.Sticky {
		flags |= stickyFlag
	}
	if len(c.Modes) > 0 {
		flags |= modesFlag
	}
	if c.Upgrades {
		flags |= upgradeFlag
	}
	if c.Inner > 0 {
		flags |= innerFlag
	}
	return flags
}

// appendMode appends a mode, with the numbers of ModePermits.
func appendMode(b []byte, m Mode, permits, of uint32) []byte {
	if b = append(b, byte(m)); m != ModePermits {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(permits)), uint64(of))
}

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
