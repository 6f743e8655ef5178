package lockfsm

import (
	"slices"
	"time"
)

// Kind is the kind of a command. The values are part of the log's format and never change.
//
// Code that accepts commands from other instances must reject Stamp, Born, EndGrace, Raise, Expire,
// Adopt, Evict, Put, SetValue, Reserve, Refuse and Lead, which only the leader may send.
type Kind uint8

const (
	// Stamp carries the leader's wall clock in WallUnixMS. The state keeps the largest WallUnixMS
	// for display.
	Stamp Kind = 1
	// Born founds the group. The machine refuses every other command before Born.
	Born Kind = 2
	// EndGrace ends the grace. The machine grants locks from then on.
	EndGrace Kind = 3
	// Raise raises the group to rules version Version.
	Raise Kind = 4
	// Open opens a session of Opener with Nonce, TTL and Record. The session has Rights.
	Open Kind = 5
	// Attach begins an attachment of Session with Epoch and Live. Nonce must be that of the
	// session's Open, so that an Attach with a wrong Session fails. Number is the first number that
	// the session has not used.
	Attach Kind = 6
	// Leaving records that the instance of Session is about to leave.
	Leaving Kind = 7
	// Close ends Session and all its requests.
	Close Kind = 8
	// Expire ends Session in the same way as Close, but only if the log entry with the Expire has
	// term Term. Holds with a Delay stay until Expire is repeated. With a Cause, it ends the session
	// although its TTL has not passed, and changes nothing if the session is gone, because a further
	// Expire would cut the delays short. Record and Value are then By and Reason of the events.
	Expire Kind = 9
	// Acquire requests the lock Key, or Key and Keys together, as request Number. With Try, the
	// request is only queued if it waits for the answer of a stay, see InUse.
	//
	// With a Token, Acquire instead resumes the hold of Key with this token, including all other
	// keys of the hold. The hold may be of any session, but see Rights.
	Acquire Kind = 10
	// Release ends request Number, whether the request is granted or waits.
	Release Kind = 11
	// Cancel does the same as Release. A log shows which of the two was used.
	Cancel Kind = 12
	// Adopt changes SessionTTL, the budgets and Settings in the charter. A zero or empty field
	// changes nothing. Existing sessions keep their TTL.
	Adopt Kind = 13
	// Evict ends the request of any session that holds Key with Token. Record describes the
	// instance that requests the eviction, and Value is the reason.
	Evict Kind = 14
	// Detach removes request Number from Session. A hold with a Delay stays until the delay has
	// passed or an Acquire resumes the hold. Any other request ends. Value is the reason if the
	// Detach was sent because the holder no longer exists: the event has the cause Expired, and the
	// audit log keeps it.
	Detach Kind = 15
	// Put sets the data of Key to Value, or removes the data if Value is empty. It succeeds only if
	// the present data has the given Revision, or if Revision is zero and there is no data. Nonce
	// makes Put idempotent until another Put changes the data. With a Token, it also fails unless a
	// session that is not gone holds Lock with that token, and not as a stay.
	Put Kind = 16
	// InUse is the answer of a stay's owner to requests with Try that wait for the stay Number:
	// the caller that was granted Token out of the stay holds the lock. It ends with Held those of
	// these requests up to the place Revision that do not fit beside the stays.
	InUse Kind = 17
	// SetValue changes the Value of the request that holds Key with Token, if Seq is higher than
	// that of the last change of this hold. The instance in Opener must be the one that opened the
	// session of the hold, because a token is no secret.
	SetValue Kind = 18
	// Reserve takes the next Count revisions, so that no later grant or change has one of them. The
	// result names them. A repetition takes others.
	Reserve Kind = 19
	// Refuse ends request Number of Session, which waits in a deadlock that its Acquire did not find
	// within its bound. Proof contains the requests of the deadlock. A Proof that proves no deadlock
	// changes nothing.
	Refuse Kind = 20
	// Lapse reports that the caller that was granted Token out of the stay Number has ended without
	// a release. Value is the reason. The caller's hold ends in the event log and in the audit log,
	// and the stay remains. A Lapse that the audit log has already changes nothing.
	Lapse Kind = 21
	// Downgrade gives the keys of the hold Number the Modes, in the order of its keys. The present
	// mode of each key must exclude all that the new mode excludes. The hold keeps its place and its
	// token, and the requests directly behind it that fit now are granted. Its upgrade ends.
	Downgrade Kind = 22
	// Lead records that an operator has the leadership moved. It adds an event to the audit log and
	// changes nothing else. Record and Value are By and Reason of the event.
	Lead Kind = 23
)

// Command is one decoded input of the machine. Every command carries Rules, Session, Epoch and
// Number. The kind defines the other encoded fields. Append only reads the slices, and Decode
// returns copies.
//
// A Command is safe for concurrent use while neither the Command nor its slices are changed.
type Command struct {
	// Rules is the lowest version of the rules that has this command and these fields. Zero means
	// 1.
	Rules uint32
	Kind  Kind
	laterCommand
	// Epoch is the number of an attachment of Session.
	Session SessionID
	Epoch   Epoch
	// Number is the number of the request. In Attach, it is the first unused number. In Evict,
	// Put, SetValue and Reserve, the sender chooses it, and the result returns it.
	Number Number
	// Key is the lock's name: 1 to Limits.KeyBytes bytes of UTF-8 without control characters.
	Key string
	// Keys are the further keys of the request, ascending and above Key. With Key, the request has
	// at most MaxKeys keys.
	Keys []string
	Try  bool
	// Mode is the mode of Key and of all Keys, if Modes is empty.
	Mode Mode
	// Permits is the number of permits that a request with ModePermits takes of each key. Of is the
	// total number of permits, as this request states it: Permits <= Of, Of > 1. Both are zero in
	// all other modes.
	Permits, Of uint32
	// Modes are the modes of Key and Keys, in their order, of an Acquire in which they differ. They
	// exclude Mode, Sticky and Token, and ModePermits and ModeU are none of them. In a Downgrade,
	// they are the new modes of all keys.
	Modes []Mode
	// Upgrades requests an upgrade of the hold Owner, which has ModeU and the same key: an exclusive
	// hold with its own number and token. It waits for all other holders, before all other waiting
	// requests. Until it ends, no other request is granted. It ends at the latest with its hold. It
	// has at most Notice besides.
	Upgrades bool
	// Owner is the number of the request during whose hold this request was made. It must be lower
	// than Number. Zero means no owner.
	Owner Number
	// Inner is the number of another request during whose hold an upgrade was made, as Owner is. Zero
	// means none.
	Inner Number
	// Most is the number of waiting requests of a lock at which this request is refused if it would
	// wait for that lock. If it is zero, only Limits.WaitersPerLock applies, in each of its locks.
	Most uint32
	// Delay is how long the lock stays taken after the session of its holder has expired, or after
	// Detach. It is at most MaxDelay, in whole milliseconds.
	Delay time.Duration
	// Sticky requests a stay: a hold that its session keeps after its callers have unlocked, until
	// another request waits for the lock. The grant reserves tokens for the callers. Sticky implies
	// Notice. It is for an exclusive or shared lock of one key without Owner, Most, Delay, Value and
	// Token.
	Sticky bool
	// Notice requests a notice if another request waits for the lock while this request holds it.
	Notice bool
	// Value is opaque, at most MaxValueBytes long. Requests that wait for the holder can read it.
	Value []byte
	Token Token
	// Lock is the key of the hold that guards a Put with a Token.
	Lock string
	// Seq is the number of a SetValue, positive. The numbers of one hold rise.
	Seq uint64
	// Count is the number of revisions that a Reserve takes, 1 to MaxReserved.
	Count uint32
	// Proof contains the places of the requests of a deadlock, at most MaxProof, see Refuse.
	Proof []Place
	// Revision is the revision of the data that a Put replaces, or the place in an InUse.
	Revision Revision
	Term     uint64
	// Cause is Revoked or Superseded in an Expire for this cause. Zero means that the TTL has passed.
	Cause Cause
	// Nonce is a random value that identifies repetitions. It does not prove an identity, because
	// every voter has it.
	Nonce  Nonce
	Opener Opener
	// Life is the number of the start of the instance that opens the session, see SessionInfo. The
	// leader reads it on the connection of the sender.
	Life uint64
	// Since claims, in an Attach, that the starts of the same instance from this number on, and before
	// the Life of the session, have ended. It is below 2^63. Zero claims nothing. The machine ignores
	// it: the leader proposes an Expire of each session that one of those starts has opened.
	Since uint64
	// Former claims, in an Attach, that another instance has ended, see session.ClaimFormer. It is
	// opaque, at most MaxFormerBytes long. Empty claims nothing. The machine ignores it, like Since.
	Former []byte
	// Rights is the canonical text of a capability, which the leader has read on the connection of
	// the sender. Empty means a full instance, which has every right. In Open they are the rights of
	// the session: it can lock only keys that they grant, and can resume the hold of another session
	// that is not gone only if they grant read and force on each key of the hold, or if Opener has
	// the same Instance or Capability. In Evict they must grant read and force on each key of the
	// hold.
	Rights string
	// TTL is the requested TTL. A session gets at most the group's TTL. Zero requests the group's
	// TTL. In Adopt, TTL is the group's new TTL, and zero means no change. Negative values cannot
	// be decoded.
	TTL time.Duration
	// Record describes the instance to its peers. It is opaque, at most MaxRecordBytes long.
	Record []byte
	// Live contains the requests that the sender still wants, all below Number, in ascending ranges
	// without overlap.
	Live       []Range
	WallUnixMS int64
	Version    uint32
	// Settings are the group's new settings, opaque, at most MaxSettingsBytes long. Empty means no
	// change.
	Settings []byte
	// SessionBytes and GroupBytes are the group's new budgets, at most 2^50 each. Zero means no
	// change.
	SessionBytes, GroupBytes uint64
}

// Header is the beginning of every command. It is the same at every version of the rules, so that a
// refusal can name any command.
type Header struct {
	Rules   uint32
	Kind    Kind
	Session SessionID
	Epoch   Epoch
	Number  Number
}

// Ask makes c, an Acquire of the keys of g, lock them as g does.
func (c *Command) Ask(g *Grant) {
	c.Mode, c.Permits, c.Of, c.Modes = g.mode(0), 0, 0, nil
	switch {
	case c.Mode == ModePermits:
		c.Permits, c.Of = g.Permits, g.Of
	case slices.ContainsFunc(g.Modes, func(m Mode) bool { return m != c.Mode }):
		c.Mode, c.Modes = ModeX, g.Modes
	}
}

// Asked returns what the Acquire c would be granted. A resumption is granted what its hold
// includes, and not this.
func (c *Command) Asked() Grant {
	g := Grant{Key: c.Key, Keys: c.Keys, Permits: c.Permits, Of: c.Of, Modes: c.Modes, Delay: c.Delay, Value: c.Value}
	switch c.Mode {
	case ModeX, ModePermits:
	case ModeIS:
		g.Permits = 1
	default:
		g.Modes = slices.Repeat([]Mode{c.Mode}, 1+len(c.Keys))
	}
	return g
}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case Stamp:
		return "stamp"
	case Born:
		return "born"
	case EndGrace:
		return "endgrace"
	case Raise:
		return "raise"
	case Open:
		return "open"
	case Attach:
		return "attach"
	case Leaving:
		return "leaving"
	case Close:
		return "close"
	case Expire:
		return "expire"
	case Acquire:
		return "acquire"
	case Release:
		return "release"
	case Cancel:
		return "cancel"
	case Adopt:
		return "adopt"
	case Evict:
		return "evict"
	case Detach:
		return "detach"
	case Put:
		return "put"
	case InUse:
		return "inuse"
	case SetValue:
		return "setvalue"
	case Reserve:
		return "reserve"
	case Refuse:
		return "refuse"
	case Lapse:
		return "lapse"
	case Downgrade:
		return "downgrade"
	case Lead:
		return "lead"
	}
	return k.laterName()
}
