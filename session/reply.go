package session

import (
	"encoding/binary"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// replyKind says what a record of the keeper is. The values are part of the protocol between builds: they stay, and new ones are
// added at the end. A client skips records of a kind that it does not know, and bytes behind the fields that it knows.
type replyKind uint8

const (
	// replyOpened answers Open: nonce, code, session, ttl, term.
	replyOpened replyKind = 1
	// replyAttached answers Attach: session, epoch, code, term. It comes behind the states of all live numbers, so what was named and
	// was not reported by then is finished.
	replyAttached replyKind = 2
	// replyState is what a request has come to: session, epoch, number, code, token, watch, and of a
	// code that names a budget, that budget.
	replyState replyKind = 3
	// replyHeld answers a try request that met a held lock: session, epoch, number, record, holder, token, since, waiters,
	// value, key (empty: the only one asked for).
	replyHeld replyKind = 4
	// replyFreed answers Release and Cancel: session, epoch, number, code, and of a code that names a budget, that budget.
	replyFreed replyKind = 5
	// replyRenewed acknowledges a renewal: session, epoch, seq.
	replyRenewed replyKind = 6
	// replyEnded says that an attachment is over, or never was: session, epoch, reason.
	replyEnded replyKind = 7
	// replyRedirect comes from a voter that does not lead, or has just begun to: term, leader, addr.
	replyRedirect replyKind = 8
	// replyGrace says how much of the group's grace is left: session, epoch, ttl (0: it is over). It comes right before Attached if the
	// group is in its grace, and when that ends.
	replyGrace replyKind = 9
	// replyBehind says who holds the lock that a request waits for, as it was when the request was applied: the fields of replyHeld.
	replyBehind replyKind = 10
	// replyDeadlock answers a request that would have closed a circle: session, epoch, number, count, and for each link session, record, key.
	replyDeadlock replyKind = 11
	// replyEvicted says that a request was ended by others: session, epoch, number, record (who), value (why).
	replyEvicted replyKind = 12
	// replyWanted says that somebody waits for what a request holds, which wants to be told: session, epoch, number.
	replyWanted replyKind = 13
	// replyTaken says that another session has taken up what a request held: session, epoch, number, record (the other's).
	replyTaken replyKind = 14
	// replyForbidden says that the certificate of the peer does not allow a request: session, epoch, number, key, value (the name in
	// the capability).
	replyForbidden replyKind = 15
)

// endReason says why an attachment is over. Values as fixed as those of replyKind; an unknown one means "attach anew".
type endReason uint8

const (
	// endUnknown: the keeper knows no such attachment; its stream broke, or another attachment of the session took its place.
	endUnknown endReason = 1
	// endNoSession: the session itself is over, by applied command.
	endNoSession endReason = 2
	// endOverloaded: a queue was full and something of the attachment was dropped.
	endOverloaded endReason = 3
	// endRefused: the peer sent what it may not send.
	endRefused endReason = 4
)

// NoVoter returns what an instance answers that has no keeper, so that who asks it turns to another at once: that it knows no leader.
func NoVoter() []byte { return (&reply{kind: replyRedirect}).append(nil) }

// reply is one record of the keeper, decoded. Each kind uses the fields that its comment names.
type reply struct {
	kind    replyKind
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
	number  lockfsm.Number
	code    lockfsm.Code
	token   lockfsm.Token
	watch   lockfsm.Revision
	nonce   lockfsm.Nonce
	ttl     time.Duration
	seq     uint64
	reason  endReason
	term    uint64
	leader  Peer
	addr    []byte // aliases the input
	holder  lockfsm.SessionID
	record  []byte // aliases the input
	since   int64
	waiters int64
	value   []byte         // aliases the input
	key     []byte         // aliases the input
	circle  []lockfsm.Link // its records alias the input
	budget  uint64
}

// append writes r behind b: the size of the record, its kind, its fields.
func (r *reply) append(b []byte) []byte {
	start := len(b)
	b = append(b, 0, byte(r.kind))
	switch r.kind {
	case replyOpened:
		b = append(append(b, r.nonce[:]...), byte(r.code))
		b = appendUvarints(b, uint64(r.session), uint64(r.ttl), r.term)
	case replyAttached:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.code), r.term)
	case replyState:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number), uint64(r.code), uint64(r.token), uint64(r.watch))
		b = r.appendBudget(b)
	case replyHeld, replyBehind:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number), uint64(len(r.record)))
		b = append(b, r.record...)
		b = appendUvarints(b, uint64(r.holder), uint64(r.token), uint64(max(r.since, 0)), uint64(max(r.waiters, 0)))
		b = appendSized(appendSized(b, r.value), r.key)
	case replyWanted:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number))
	case replyTaken:
		b = appendSized(appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number)), r.record)
	case replyForbidden:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number))
		b = appendSized(appendSized(b, r.key), r.value)
	case replyEvicted:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number))
		b = appendSized(appendSized(b, r.record), r.value)
	case replyDeadlock:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number), uint64(len(r.circle)))
		for _, link := range r.circle {
			b = appendUvarints(b, uint64(link.Session))
			b = appendSized(appendSized(b, link.Record), []byte(link.Key))
		}
	case replyFreed:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.number), uint64(r.code))
		b = r.appendBudget(b)
	case replyRenewed:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), r.seq)
	case replyEnded:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.reason))
	case replyRedirect:
		b = append(appendUvarints(b, r.term), r.leader[:]...)
		b = appendUvarints(b, uint64(len(r.addr)))
		b = append(b, r.addr...)
	case replyGrace:
		b = appendUvarints(b, uint64(r.session), uint64(r.epoch), uint64(r.ttl))
	}
	return putSize(b, start)
}

func appendUvarints(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func appendSized(b, field []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(field))), field...)
}

// putSize writes the size of what follows the one byte that was left free at start, and makes room where one byte is not enough.
func putSize(b []byte, start int) []byte {
	size := len(b) - start - 1
	if size < 0x80 {
		b[start] = byte(size)
		return b
	}
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(prefix[:], uint64(size))
	b = append(b, prefix[:n-1]...)
	copy(b[start+n:], b[start+1:start+1+size])
	copy(b[start:], prefix[:n])
	return b
}

// nextReply splits the first record off b, which must not be empty. A record of an unknown kind comes back with only its kind set.
func nextReply(b []byte) (r reply, rest []byte, err error) {
	outer := fields{b: b}
	body := outer.sized(uint64(len(b)))
	f := fields{b: body, bad: outer.bad}
	r.kind = replyKind(f.octet())
	r.decode(&f)
	if f.bad {
		return reply{}, nil, errWire
	}
	return r, outer.b, nil
}

func (r *reply) decode(f *fields) {
	switch r.kind {
	case replyOpened:
		copy(r.nonce[:], f.bytes(uint64(len(r.nonce))))
		r.code = lockfsm.Code(f.octet())
		r.session, r.ttl, r.term = lockfsm.SessionID(f.uvarint()), time.Duration(f.count()), f.uvarint()
	case replyAttached:
		r.name(f)
		r.code, r.term = f.code(), f.uvarint()
	case replyState:
		r.name(f)
		r.number, r.code = lockfsm.Number(f.uvarint()), f.code()
		r.token, r.watch = lockfsm.Token(f.uvarint()), lockfsm.Revision(f.uvarint())
		r.decodeBudget(f)
	case replyHeld, replyBehind:
		r.name(f)
		r.number, r.record = lockfsm.Number(f.uvarint()), f.sized(lockfsm.MaxRecordBytes)
		r.holder, r.token = lockfsm.SessionID(f.uvarint()), lockfsm.Token(f.uvarint())
		r.since, r.waiters = f.count(), f.count()
		r.value, r.key = f.sized(lockfsm.MaxValueBytes), f.sized(maxLocalKey)
	case replyWanted:
		r.name(f)
		r.number = lockfsm.Number(f.uvarint())
	case replyTaken:
		r.name(f)
		r.number, r.record = lockfsm.Number(f.uvarint()), f.sized(lockfsm.MaxRecordBytes)
	case replyForbidden:
		r.name(f)
		r.number, r.key, r.value = lockfsm.Number(f.uvarint()), f.sized(maxLocalKey), f.sized(lockfsm.MaxValueBytes)
	case replyEvicted:
		r.name(f)
		r.number, r.record, r.value = lockfsm.Number(f.uvarint()), f.sized(lockfsm.MaxRecordBytes), f.sized(lockfsm.MaxValueBytes)
	case replyDeadlock:
		r.name(f)
		r.number = lockfsm.Number(f.uvarint())
		for range min(f.uvarint(), uint64(len(f.b))) {
			link := lockfsm.Link{Session: lockfsm.SessionID(f.uvarint()), Record: f.sized(lockfsm.MaxRecordBytes)}
			link.Key = string(f.sized(maxLocalKey))
			r.circle = append(r.circle, link)
		}
	case replyFreed:
		r.name(f)
		r.number, r.code = lockfsm.Number(f.uvarint()), f.code()
		r.decodeBudget(f)
	case replyRenewed:
		r.name(f)
		r.seq = f.uvarint()
	case replyEnded:
		r.name(f)
		r.reason = endReason(min(f.uvarint(), 0xff))
	case replyRedirect:
		r.term, r.leader, r.addr = f.uvarint(), f.peer(), f.sized(maxAddrBytes)
	case replyGrace:
		r.name(f)
		r.ttl = time.Duration(f.count())
	}
}

// name reads what names an attachment.
func (r *reply) name(f *fields) {
	r.session, r.epoch = lockfsm.SessionID(f.uvarint()), lockfsm.Epoch(f.uvarint())
}

// code reads a code; one that does not fit the type becomes zero, which is no code.
func (f *fields) code() lockfsm.Code {
	v := f.uvarint()
	if v > 0xff {
		return 0
	}
	return lockfsm.Code(v)
}
