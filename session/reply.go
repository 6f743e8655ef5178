package session

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// ReplyKind is the kind of a keeper's record. The values never change. A client skips records of an
// unknown kind, and bytes after the last known field.
type ReplyKind uint8

const (
	// ReplyOpened answers Open. Fields: nonce, code, session, ttl, term, and for the code Unsupported
	// both versions of Outdated.
	ReplyOpened ReplyKind = 1
	// ReplyAttached answers Attach. It is sent after a ReplyState for each request of the session
	// that still exists. So a request that the Attach named has ended if it got no ReplyState.
	// Fields: session, epoch, code, term.
	ReplyAttached ReplyKind = 2
	// ReplyState is the state of a request. Fields: session, epoch, number, code, token, watch, and
	// the budget if the code names one. The next field is last, unless it is zero and there is no
	// grant, and then the grant of a resumed hold.
	ReplyState ReplyKind = 3
	// ReplyHeld answers a try request for a held lock. Fields: session, epoch, number, record,
	// holder, token, since, waiters, value, key. The key is empty if only one key was requested.
	ReplyHeld ReplyKind = 4
	// ReplyFreed answers Release, Detach, Cancel and Downgrade. Fields: session, epoch, number, code,
	// and the budget if the code names one.
	ReplyFreed ReplyKind = 5
	// ReplyRenewed acknowledges a renewal. Fields: session, epoch, seq.
	ReplyRenewed ReplyKind = 6
	// ReplyEnded reports that an attachment has ended, or never existed. Fields: session, epoch,
	// reason.
	ReplyEnded ReplyKind = 7
	// ReplyRedirect is sent by a voter that does not lead, or has just become leader. Fields: term,
	// leader, addr.
	ReplyRedirect ReplyKind = 8
	// ReplyGrace reports the rest of the group's grace. During the grace, it is sent before each
	// ReplyAttached. At the end of the grace it is sent once more, with a zero ttl. Fields:
	// session, epoch, ttl.
	ReplyGrace ReplyKind = 9
	// ReplyBehind describes the holder of the lock when the waiting request was applied. It has the
	// fields of ReplyHeld.
	ReplyBehind ReplyKind = 10
	// ReplyDeadlock answers a request that would have closed a circle. Fields: session, epoch,
	// number, count, and for each link session, record, key.
	ReplyDeadlock ReplyKind = 11
	// ReplyEvicted reports that a request was ended by force. Before ReplyAttached, the number is
	// zero, and the token names a hold that has ended while the session was not attached. Fields:
	// session, epoch, number, record (of the instance that ended it), value (the reason), token.
	ReplyEvicted ReplyKind = 12
	// ReplyWanted reports that another request waits for the lock of a hold with Notice. Fields:
	// session, epoch, number.
	ReplyWanted ReplyKind = 13
	// ReplyTaken reports that another session has resumed a hold of this session, which is named as
	// in ReplyEvicted. It has the fields of ReplyEvicted. The record is that of the other session, and
	// the value is empty.
	ReplyTaken ReplyKind = 14
	// ReplyForbidden reports that the peer's certificate does not allow a request. Fields: session,
	// epoch, number, key (empty if it is one of the keys of a hold), value (the name in the
	// capability), code (NotAllowed or NotForced).
	ReplyForbidden ReplyKind = 15
	// ReplyAsked reports that a request with Try waits for the answer of a stay: session, epoch,
	// number, place (of the request).
	ReplyAsked ReplyKind = 16
	// ReplyYield reports that another request is about to wait for a stay, which its owner should
	// release if it is free. Fields: session, epoch, number.
	ReplyYield ReplyKind = 17
	// ReplyUnsupported answers a command of any kind that needs a later version of the rules than the
	// group's. The command had no effect. Fields: session, epoch, number, command (its kind), rules.
	ReplyUnsupported ReplyKind = 18
)

// EndReason is the reason why an attachment has ended. The values never change. A client that
// receives an unknown reason attaches again.
type EndReason uint8

const (
	// EndUnknown: the keeper has no such attachment.
	EndUnknown EndReason = 1
	// EndNoSession: an applied command has ended the session.
	EndNoSession EndReason = 2
	// EndOverloaded: a queue was full, and a message of the attachment was dropped.
	EndOverloaded EndReason = 3
	// EndRefused: the peer sent a message that it must not send.
	EndRefused EndReason = 4
)

// NoVoter returns the reply of an instance without a keeper: a redirect that names no leader.
func NoVoter() []byte { return (&Reply{Kind: ReplyRedirect}).Append(nil) }

// Reply is one decoded record of the keeper. The comment of each kind lists the fields that it
// uses.
type Reply struct {
	Kind    ReplyKind
	Session lockfsm.SessionID
	Epoch   lockfsm.Epoch
	Number  lockfsm.Number
	Code    lockfsm.Code
	Token   lockfsm.Token
	Watch   lockfsm.Revision
	Nonce   lockfsm.Nonce
	TTL     time.Duration
	Seq     uint64
	Reason  EndReason
	Term    uint64
	Leader  nodeid.ID
	Addr    []byte // aliases the input
	Holder  lockfsm.SessionID
	Record  []byte // aliases the input
	Since   int64
	Waiters int64
	Value   []byte         // aliases the input
	Key     []byte         // aliases the input
	Circle  []lockfsm.Link // the Records of the links alias the input
	Budget  uint64
	// Outdated is why the leader opens no session; zero for another reason.
	Outdated Outdated
	Last     lockfsm.Token    // the last token that a stay has reserved; zero means that the request is no stay
	Grant    *lockfsm.Grant   // what a resumed hold includes; nil if the session has not resumed it
	Place    lockfsm.Revision // of a request with Try
	Kept     bool             // the holder is a stay, and may be free
	Command  lockfsm.Kind     // the kind of the command
	Rules    uint32           // the version of the rules in force
}

// Append appends r to b, as the size of the record, its kind and its fields.
func (r *Reply) Append(b []byte) []byte {
	start := len(b)
	b = append(b, 0, byte(r.Kind))
	switch r.Kind {
	case ReplyOpened:
		b = append(append(b, r.Nonce[:]...), byte(r.Code))
		b = appendUvarints(b, uint64(r.Session), uint64(r.TTL), r.Term)
		if r.Code == lockfsm.Unsupported {
			b = appendUvarints(b, uint64(r.Outdated.Group), uint64(r.Outdated.Build))
		}
	case ReplyAttached:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Code), r.Term)
	case ReplyState:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number), uint64(r.Code), uint64(r.Token),
			uint64(r.Watch))
		b = r.appendBudget(b)
		if r.Last != 0 || r.Grant != nil {
			b = appendUvarints(b, uint64(r.Last))
		}
		if r.Grant != nil {
			b = appendGrant(b, r.Grant)
		}
	case ReplyHeld, ReplyBehind:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number), uint64(len(r.Record)))
		b = append(b, r.Record...)
		b = appendUvarints(b, uint64(r.Holder), uint64(r.Token), uint64(max(r.Since, 0)), uint64(max(r.Waiters, 0)))
		b = appendSized(appendSized(b, r.Value), r.Key)
		if r.Kept {
			b = append(b, 1)
		}
	case ReplyWanted, ReplyYield:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number))
	case ReplyAsked:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number), uint64(r.Place))
	case ReplyUnsupported:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number))
		b = binary.AppendUvarint(append(b, byte(r.Command)), uint64(r.Rules))
	case ReplyForbidden:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number))
		b = appendUvarints(appendSized(appendSized(b, r.Key), r.Value), uint64(r.Code))
	case ReplyEvicted, ReplyTaken:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number))
		b = appendUvarints(appendSized(appendSized(b, r.Record), r.Value), uint64(r.Token))
	case ReplyDeadlock:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number), uint64(len(r.Circle)))
		for _, link := range r.Circle {
			b = appendUvarints(b, uint64(link.Session))
			b = appendSized(appendSized(b, link.Record), []byte(link.Key))
		}
	case ReplyFreed:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Number), uint64(r.Code))
		b = r.appendBudget(b)
	case ReplyRenewed:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), r.Seq)
	case ReplyEnded:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.Reason))
	case ReplyRedirect:
		b = append(appendUvarints(b, r.Term), r.Leader[:]...)
		b = appendUvarints(b, uint64(len(r.Addr)))
		b = append(b, r.Addr...)
	case ReplyGrace:
		b = appendUvarints(b, uint64(r.Session), uint64(r.Epoch), uint64(r.TTL))
	}
	return putSize(b, start)
}

// putSize writes the size of the record at start, where one byte is reserved.
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

// NextReply splits the first record off b, which must not be empty. If the kind is unknown, only
// the field Kind is set.
func NextReply(b []byte) (r Reply, rest []byte, err error) {
	outer := fields{b: b}
	body := outer.sized(uint64(len(b)))
	f := fields{b: body, bad: outer.bad}
	r.Kind = ReplyKind(f.octet())
	r.decode(&f)
	if f.bad {
		return Reply{}, nil, errWire
	}
	return r, outer.b, nil
}

func (r *Reply) decode(f *fields) {
	switch r.Kind {
	case ReplyOpened:
		r.decodeOpened(f)
	case ReplyAttached:
		r.name(f)
		r.Code, r.Term = f.code(), f.uvarint()
	case ReplyState:
		r.decodeState(f)
	case ReplyHeld, ReplyBehind:
		r.name(f)
		r.Number, r.Record = lockfsm.Number(f.uvarint()), f.sized(lockfsm.MaxRecordBytes)
		r.Holder, r.Token = lockfsm.SessionID(f.uvarint()), lockfsm.Token(f.uvarint())
		r.Since, r.Waiters = f.count(), f.count()
		r.Value, r.Key = f.sized(lockfsm.MaxValueBytes), f.sized(LongestKey)
		r.Kept = len(f.b) > 0 && f.octet() == 1
	case ReplyWanted, ReplyYield:
		r.name(f)
		r.Number = lockfsm.Number(f.uvarint())
	case ReplyAsked:
		r.name(f)
		r.Number, r.Place = lockfsm.Number(f.uvarint()), lockfsm.Revision(f.uvarint())
	case ReplyUnsupported:
		r.name(f)
		r.Number, r.Command, r.Rules = lockfsm.Number(f.uvarint()), lockfsm.Kind(f.octet()), f.version()
	case ReplyForbidden:
		r.name(f)
		r.Number, r.Key, r.Value = lockfsm.Number(f.uvarint()), f.sized(LongestKey), f.sized(lockfsm.MaxValueBytes)
		r.Code = f.code()
	case ReplyEvicted, ReplyTaken:
		r.name(f)
		r.Number, r.Record = lockfsm.Number(f.uvarint()), f.sized(lockfsm.MaxRecordBytes)
		r.Value, r.Token = f.sized(lockfsm.MaxValueBytes), lockfsm.Token(f.uvarint())
	case ReplyDeadlock:
		r.name(f)
		r.Number = lockfsm.Number(f.uvarint())
		for range min(f.uvarint(), uint64(len(f.b))) {
			link := lockfsm.Link{Session: lockfsm.SessionID(f.uvarint()), Record: f.sized(lockfsm.MaxRecordBytes)}
			link.Key = string(f.sized(LongestKey))
			r.Circle = append(r.Circle, link)
		}
	case ReplyFreed:
		r.name(f)
		r.Number, r.Code = lockfsm.Number(f.uvarint()), f.code()
		r.decodeBudget(f)
	case ReplyRenewed:
		r.name(f)
		r.Seq = f.uvarint()
	case ReplyEnded:
		r.name(f)
		r.Reason = EndReason(min(f.uvarint(), 0xff))
	case ReplyRedirect:
		r.Term, r.Leader, r.Addr = f.uvarint(), f.peer(), f.sized(maxAddrBytes)
	case ReplyGrace:
		r.name(f)
		r.TTL = time.Duration(f.count())
	}
}

func (r *Reply) decodeState(f *fields) {
	r.name(f)
	r.Number, r.Code = lockfsm.Number(f.uvarint()), f.code()
	r.Token, r.Watch = lockfsm.Token(f.uvarint()), lockfsm.Revision(f.uvarint())
	r.decodeBudget(f)
	if len(f.b) > 0 {
		r.Last = lockfsm.Token(f.uvarint())
	}
	if len(f.b) > 0 {
		r.Grant = f.grant()
	}
}

func (r *Reply) decodeOpened(f *fields) {
	copy(r.Nonce[:], f.bytes(uint64(len(r.Nonce))))
	r.Code = lockfsm.Code(f.octet())
	r.Session, r.TTL, r.Term = lockfsm.SessionID(f.uvarint()), time.Duration(f.count()), f.uvarint()
	if r.Code == lockfsm.Unsupported {
		r.Outdated = Outdated{Group: f.version(), Build: f.version()}
	}
}

func (r *Reply) name(f *fields) {
	r.Session, r.Epoch = lockfsm.SessionID(f.uvarint()), lockfsm.Epoch(f.uvarint())
}

func (f *fields) version() uint32 {
	v := f.uvarint()
	f.bad = f.bad || v > math.MaxUint32
	return uint32(v)
}

func (f *fields) code() lockfsm.Code {
	v := f.uvarint()
	if v > 0xff {
		return 0
	}
	return lockfsm.Code(v)
}
