package lockfsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// Next splits the first command off a batch and returns it without its size prefix. Both results
// share the batch's memory, and batch[:len(batch)-len(rest)] is the command with its prefix. The
// error wraps ErrMalformed. After an error the rest of the batch cannot be read, because the start
// of the next command is unknown.
func Next(batch []byte) (command, rest []byte, err error) {
	r := reader{b: batch}
	command = r.bytes(r.uvarint("size"), "size")
	if r.fault != "" {
		return nil, nil, fmt.Errorf("%w: the size prefix is cut off or larger than the %d bytes at hand",
			ErrMalformed, len(batch))
	}
	return command, r.b, nil
}

// Peek reads only the header of a command. It allocates only if it fails. The error wraps
// ErrMalformed.
func Peek(command []byte) (Header, error) {
	r := reader{b: command}
	var h Header
	r.header(&h)
	if r.fault != "" {
		return Header{}, fmt.Errorf("%w: bad %s", ErrMalformed, r.fault)
	}
	return h, nil
}

// PeekAttach reads only the fields Nonce, Since and Former of an Attach. Former shares the memory
// of the command. PeekAttach allocates only if it fails. The error wraps ErrMalformed, also for any
// other kind of command.
func PeekAttach(command []byte) (n Nonce, since uint64, former []byte, err error) {
	r := reader{b: command}
	var h Header
	r.header(&h)
	if h.Kind != Attach {
		r.fail("kind")
	}
	n = r.nonce()
	since, former = r.claim()
	if r.fault != "" {
		return Nonce{}, 0, nil, fmt.Errorf("%w: bad %s", ErrMalformed, r.fault)
	}
	return n, since, former, nil
}

// Decode reads one command without its size prefix. The result shares no memory with the input.
// Decode allocates at most a small multiple of the input's size. It accepts only the encoding that
// Append writes. The error wraps ErrMalformed or, for a rules version above RulesVersion, ErrRules.
func Decode(command []byte) (Command, error) {
	r := reader{b: command}
	var v view
	r.header(&v.Header)
	if r.fault == "" && v.Rules > RulesVersion {
		return Command{}, fmt.Errorf("%w: the command needs version %d, this build knows up to %d", ErrRules, v.Rules,
			RulesVersion)
	}
	r.fields(&v)
	if r.fault != "" {
		return Command{}, fmt.Errorf("%w: bad %s", ErrMalformed, r.fault)
	}
	c := Command{
		Rules: v.Rules, Kind: v.Kind, Session: v.Session, Epoch: v.Epoch, Number: v.Number,
		Key: string(v.key), Try: v.try, Mode: v.mode, Owner: v.owner, Upgrades: v.upgrades, Inner: v.inner,
		Most:  v.limit,
		Value: copied(v.value), Sticky: v.sticky, Notice: v.notice, Delay: time.Duration(v.delayMS) * time.Millisecond,
		Token: v.token, Lock: string(v.lock), Seq: v.seq, Count: v.count, Revision: v.revision, Term: v.term, Cause: v.cause,
		Nonce:  v.nonce,
		Opener: v.opener, Life: v.life, Since: v.since, Former: copied(v.former),
		Rights:     v.rights.Text(),
		TTL:        v.ttl,
		Record:     copied(v.record),
		WallUnixMS: v.wallUnixMS, Version: v.version, Settings: copied(v.settings),
		SessionBytes: v.sessionBytes, GroupBytes: v.groupBytes,
	}
	c.laterCommand = v.laterCommand()
	if n := v.live.left; n > 0 {
		c.Live = make([]Range, n)
		for i := range c.Live {
			c.Live[i] = v.live.next()
		}
	}
	if v.mode == ModePermits {
		c.Permits, c.Of = v.permits, v.of
	}
	for _, mode := range v.modes {
		c.Modes = append(c.Modes, Mode(mode))
	}
	for proof := v.proof; proof.left > 0; {
		c.Proof = append(c.Proof, proof.next())
	}
	for more := v.more; more.left > 0; {
		c.Keys = append(c.Keys, string(more.next()))
	}
	return c, nil
}

// view is a decoded command whose byte slices share the memory of the log entry.
type view struct {
	Header
	laterView
	key, record []byte
	settings    []byte
	live        ranges
	try         bool
	mode        Mode   // the mode of all keys; ModeX if there are modes
	permits, of uint32 // of the first key
	more        keys
	modes       []byte
	proof       proof
	owner       Number
	upgrades    bool
	inner       Number
	limit       uint32
	value       []byte
	sticky      bool
	notice      bool
	delayMS     uint32
	token       Token
	lock        []byte
	seq         uint64
	count       uint32
	revision    Revision
	term        uint64
	cause       Cause
	nonce       Nonce
	opener      Opener
	life, since uint64
	former      []byte
	rights      *capability.Capability
	ttl         time.Duration
	wallUnixMS  int64
	version     uint32
	asks        uint32 // the stays that the request with Try asks for an answer
	found       *lock  // of the key that refuseOne has looked up last; nil if there is none

	sessionBytes, groupBytes uint64
}

// ranges iterates over the encoded ranges of an Attach, which the reader has validated.
type ranges struct {
	b    []byte
	left int
	last Number
}

func (l *ranges) next() Range {
	skip, n := binary.Uvarint(l.b)
	span, k := binary.Uvarint(l.b[n:])
	l.b = l.b[n+k:]
	l.left--
	first := l.last + Number(skip)
	l.last = first + Number(span)
	return Range{First: first, Last: l.last}
}

func (r *reader) header(h *Header) {
	h.Rules = uint32(r.max(math.MaxUint32, "rules version"))
	if h.Rules == 0 {
		r.fail("rules version")
	}
	h.Kind = Kind(r.flags(0xff, "kind"))
	h.Session = SessionID(r.uvarint("session"))
	h.Epoch = Epoch(r.uvarint("epoch"))
	h.Number = Number(r.max(uint64(MaxNumber), "number"))
}

func (r *reader) fields(v *view) {
	switch v.Kind {
	case Stamp:
		v.wallUnixMS = int64(r.max(math.MaxInt64, "wall stamp"))
	case Raise:
		v.version = uint32(r.max(math.MaxUint32, "version"))
	case Open:
		v.nonce = r.nonce()
		r.opening(v)
		v.ttl = time.Duration(r.max(math.MaxInt64, "TTL"))
		v.record = r.bytes(r.max(MaxRecordBytes, "record"), "record")
	case Attach:
		v.nonce = r.nonce()
		v.since, v.former = r.claim()
		v.live = r.ranges(v.Number)
	case Expire:
		r.expire(v)
	case Acquire:
		r.acquire(v)
	case Adopt:
		v.ttl = time.Duration(r.max(math.MaxInt64, "TTL"))
		v.sessionBytes, v.groupBytes = r.max(maxBudget, "budget"), r.max(maxBudget, "budget")
		v.settings = r.bytes(r.max(MaxSettingsBytes, "settings"), "settings")
	case Evict:
		v.token = Token(r.positive(uint64(maxRevision), "token"))
		v.key = r.bytes(r.uvarint("key"), "key")
		v.record = r.bytes(r.max(MaxRecordBytes, "record"), "record")
		v.value = r.bytes(r.max(MaxValueBytes, "value"), "value")
		v.rights = r.rights(r.max(capability.MaxBytes, "rights"))
	case Put:
		v.nonce = r.nonce()
		v.revision = Revision(r.max(uint64(maxRevision), "revision"))
		v.key = r.bytes(r.uvarint("key"), "key")
		v.value = r.bytes(r.max(MaxDataBytes, "value"), "value")
		v.token = Token(r.max(uint64(maxRevision), "token"))
		if v.lock = r.bytes(r.uvarint("lock"), "lock"); v.token == 0 && len(v.lock) > 0 {
			r.fail("token")
		}
	case Detach:
		v.value = r.bytes(r.max(MaxValueBytes, "value"), "value")
	case InUse:
		r.inUse(v)
	case Lapse:
		v.token = Token(r.positive(uint64(maxRevision), "token"))
		v.value = r.bytes(r.positive(MaxValueBytes, "value"), "value")
	case SetValue:
		r.setValue(v)
	case Reserve:
		v.count = uint32(r.positive(MaxReserved, "count"))
	case Refuse:
		v.proof = r.proof()
	case Lead:
		v.record = r.bytes(r.positive(MaxRecordBytes, "record"), "record")
		v.value = r.bytes(r.positive(MaxValueBytes, "value"), "value")
	case Downgrade:
		r.modes(v, int(r.positive(MaxKeys, "modes")))
	case Born, EndGrace, Leaving, Close, Release, Cancel:
	default:
		v.later(r)
	}
	r.end()
}

func (r *reader) expire(v *view) {
	v.term = r.uvarint("term")
	switch v.cause = Cause(r.flags(0xff, "cause")); v.cause {
	case 0:
	case Revoked, Superseded:
		v.record = r.bytes(r.max(MaxRecordBytes, "record"), "record")
		v.value = r.bytes(r.max(MaxValueBytes, "value"), "value")
	default:
		r.fail("cause")
	}
}

func (r *reader) acquire(v *view) {
	flags := r.max(acquireFlags|v.laterFlags(), "flags")
	v.try = flags&tryFlag != 0
	v.key = r.bytes(r.uvarint("key"), "key")
	if flags&^tryFlag == 0 {
		return
	}
	v.notice = flags&noticeFlag != 0
	if v.sticky = flags&stickyFlag != 0; v.sticky && flags&^(stickyFlag|tryFlag|modeFlag) != 0 {
		r.fail("flags")
	}
	if v.upgrades = flags&upgradeFlag != 0; v.upgrades && flags&^(noticeFlag|innerFlag) != upgradeFlag|ownerFlag ||
		!v.upgrades && flags&innerFlag != 0 {
		r.fail("flags")
	}
	if flags&modeFlag != 0 {
		if v.mode, v.permits, v.of = r.otherMode(); v.sticky && v.mode != ModeIS {
			r.fail("mode")
		}
	}
	if flags&severalFlag != 0 {
		v.more = r.keys(v.key)
	}
	if flags&ownerFlag != 0 {
		v.owner = Number(r.positive(uint64(MaxNumber), "owner"))
		if v.owner >= v.Number { // so that a chain of owners has an end
			r.fail("owner")
		}
	}
	if flags&mostFlag != 0 {
		v.limit = uint32(r.positive(math.MaxUint32, "most"))
	}
	if flags&valueFlag != 0 {
		v.value = r.bytes(r.positive(MaxValueBytes, "value"), "value")
	}
	if flags&delayFlag != 0 {
		v.delayMS = uint32(r.positive(uint64(MaxDelay.Milliseconds()), "delay"))
	}
	if flags&takesUpFlag != 0 {
		v.token = Token(r.positive(uint64(maxRevision), "token"))
		if flags&(tryFlag|modeFlag|severalFlag|mostFlag) != 0 { // no resumption has these flags
			r.fail("flags")
		}
	}
	if flags&innerFlag != 0 {
		r.inner(v)
	}
	if v.mode == ModeU && (v.more.left > 0 || v.delayMS != 0) {
		r.fail("mode")
	}
	if flags&modesFlag != 0 {
		r.modes(v, 1+v.more.left)
		if r.modesOfRequest(v); flags&(modeFlag|takesUpFlag|stickyFlag) != 0 {
			r.fail("flags")
		}
	}
	v.laterAcquire(r, flags)
}

// mode reads a mode and the numbers of ModePermits. It returns the permits and the total by the
// rule of permits.
func (r *reader) mode() (m Mode, permits, of uint32) {
	m = Mode(r.flags(0xff, "mode"))
	switch permits, of = m.Terms(); {
	case m > ModePermits:
		r.fail("mode")
	case m == ModePermits:
		permits, of = uint32(r.max(math.MaxUint32, "permits")), uint32(r.max(math.MaxUint32, "permits"))
		if !semaphore(permits, of) {
			r.fail("permits")
		}
	}
	return m, permits, of
}

// otherMode is like mode, and refuses ModeX, which is not encoded.
func (r *reader) otherMode() (m Mode, permits, of uint32) {
	if m, permits, of = r.mode(); m == ModeX {
		r.fail("mode")
	}
	return m, permits, of
}

// modes reads the modes of a number of keys.
func (r *reader) modes(v *view, keys int) {
	v.modes = r.bytes(uint64(keys), "modes")
	for _, mode := range v.modes {
		if Mode(mode) > ModeU {
			r.fail("modes")
		}
	}
}

// modesOfRequest sets the permits of the first key. Equal modes have another encoding, and an
// upgradable request has one key.
func (r *reader) modesOfRequest(v *view) {
	if r.fault == "" && bytes.Count(v.modes, v.modes[:1]) == len(v.modes) || bytes.IndexByte(v.modes, byte(ModeU)) >= 0 {
		r.fail("modes")
	}
	if r.fault == "" {
		v.permits, v.of = Mode(v.modes[0]).Terms()
		v.more.modes = v.modes[1:]
	}
}

// positive reads a uvarint from 1 to limit. It refuses zero, because a zero field is not encoded.
func (r *reader) positive(limit uint64, what string) uint64 {
	v := r.max(limit, what)
	if v == 0 {
		r.fail(what)
	}
	return v
}

// keys iterates over the keys of an Acquire after the first, which the reader has validated.
type keys struct {
	b     []byte
	left  int
	modes []byte // nil if all keys of the Acquire have the same mode
}

// terms returns the permits and the total of the key that next returns. The request c must be that
// of the keys.
func (k *keys) terms(c *view) (permits, of uint32) {
	if len(k.modes) == 0 {
		return c.permits, c.of
	}
	return Mode(k.modes[0]).Terms()
}

// mode is like terms, for the mode.
func (k *keys) mode(c *view) Mode {
	if len(k.modes) == 0 {
		return c.mode
	}
	return Mode(k.modes[0])
}

// first returns the mode of the first key of an Acquire.
func (c *view) first() Mode {
	if len(c.modes) > 0 {
		return Mode(c.modes[0])
	}
	return c.mode
}

func (k *keys) next() []byte {
	if len(k.modes) > 0 {
		k.modes = k.modes[1:]
	}
	size, n := binary.Uvarint(k.b)
	key := k.b[n : n+int(size)]
	k.b = k.b[n+int(size):]
	k.left--
	return key
}

// keys reads the keys after the first. They must ascend, so that no lock is named twice.
func (r *reader) keys(before []byte) keys {
	count := int(r.positive(MaxKeys-1, "keys"))
	all := r.b
	for range count {
		key := r.bytes(r.uvarint("keys"), "keys")
		if bytes.Compare(before, key) >= 0 {
			r.fail("keys")
		}
		if before = key; r.fault != "" {
			return keys{}
		}
	}
	return keys{b: all[:len(all)-len(r.b)], left: count}
}

// claim reads what an Attach claims.
func (r *reader) claim() (since uint64, former []byte) {
	since = r.uvarint("since")
	if since&1 != 0 {
		former = r.bytes(r.positive(MaxFormerBytes, "former"), "former")
	}
	return since >> 1, former
}

func (r *reader) nonce() (n Nonce) {
	copy(n[:], r.bytes(uint64(len(n)), "nonce"))
	if n == (Nonce{}) {
		r.fail("nonce")
	}
	return n
}

func (r *reader) opener() (o Opener) {
	copy(o.Instance[:], r.bytes(uint64(len(o.Instance)), "opener"))
	if r.flags(1, "opener") == 1 {
		copy(o.Capability[:], r.bytes(uint64(len(o.Capability)), "opener"))
		if o.Capability == [32]byte{} {
			r.fail("opener")
		}
	}
	return o
}

// opening reads the instance, its life and the rights of an Open.
func (r *reader) opening(v *view) {
	copy(v.opener.Instance[:], r.bytes(uint64(len(v.opener.Instance)), "opener"))
	v.life = r.uvarint("life")
	v.rights = r.rights(r.max(capability.MaxBytes, "rights"))
	v.opener.Capability = v.rights.Hash()
}

// rights reads a capability of n bytes. It returns nil, a full instance, if n is 0.
func (r *reader) rights(n uint64) *capability.Capability {
	text := r.bytes(n, "rights")
	if len(text) == 0 {
		return nil
	}
	c, err := capability.Parse(string(text))
	if err != nil {
		r.fail("rights")
	}
	return c
}

// ranges reads the live numbers of an Attach, which must be below next, its first unused number. A
// higher number could be reported as finished although a request can still use it.
func (r *reader) ranges(next Number) ranges {
	count := r.count(2, "live")
	all := r.b
	last := uint64(0)
	for range count {
		first := r.sum(last, math.MaxUint64, "live")
		if first == last {
			r.fail("live")
		}
		last = r.sum(first, math.MaxUint64, "live")
		if last >= uint64(next) {
			r.fail("live")
		}
		if r.fault != "" {
			return ranges{}
		}
	}
	return ranges{b: all[:len(all)-len(r.b)], left: count}
}

func (r *reader) inUse(v *view) {
	v.revision = Revision(r.positive(uint64(maxRevision), "place"))
	v.token = Token(r.positive(uint64(maxRevision), "token"))
}

func (r *reader) setValue(v *view) {
	v.opener = r.opener()
	v.token = Token(r.positive(uint64(maxRevision), "token"))
	v.seq = r.positive(math.MaxUint64, "seq")
	v.key = r.bytes(r.uvarint("key"), "key")
	v.value = r.bytes(r.max(MaxValueBytes, "value"), "value")
}

// proof iterates over the encoded places of a Refuse, which the reader has validated.
type proof struct {
	b    []byte
	left int
}

func (p *proof) next() Place {
	session, n := binary.Uvarint(p.b)
	number, k := binary.Uvarint(p.b[n:])
	at := Place{Session: SessionID(session), Number: Number(number), Key: p.b[n+k]}
	p.b = p.b[n+k+1:]
	p.left--
	return at
}

func (r *reader) proof() proof {
	count := int(r.positive(MaxProof, "proof"))
	all := r.b
	for range count {
		r.uvarint("proof")
		r.max(uint64(MaxNumber), "proof")
		if r.flags(0xff, "proof"); r.fault != "" {
			return proof{}
		}
	}
	return proof{b: all[:len(all)-len(r.b)], left: count}
}

// inner reads the Inner of an upgrade.
func (r *reader) inner(v *view) {
	v.inner = Number(r.positive(uint64(MaxNumber), "inner"))
	if v.inner >= v.Number || v.inner == v.owner {
		r.fail("inner")
	}
}

func (c *view) hasRest() bool {
	return c.more.left > 0 || c.owner != 0 || len(c.value) > 0 || c.delayMS != 0 || c.sticky
}

// allowedBy reports whether the rights grant lock on every key of an Acquire.
func (c *view) allowedBy(rights *sharedRights) bool {
	if rights == nil {
		return true
	}
	allowed := rights.mayLock(string(c.key))
	for more := c.more; more.left > 0 && allowed; {
		allowed = rights.mayLock(string(more.next()))
	}
	return allowed
}
