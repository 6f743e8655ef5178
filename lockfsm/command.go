package lockfsm

import "time"

// Kind is the kind of a command. The values are part of the log's format: they are fixed, and new
// ones are added at the end.
//
// The machine does not know the sender of a command. Stamp, Born, EndGrace, Raise, Expire, Adopt,
// Evict and Put are reserved to the leader: code that accepts commands from other instances must
// reject them.
type Kind uint8

const (
	// Stamp carries the leader's wall clock in WallUnixMS. The state keeps the largest WallUnixMS,
	// which is only used to show since when a lock is held.
	Stamp Kind = 1
	// Born founds the group. Every other command is refused before Born.
	Born Kind = 2
	// EndGrace ends the grace: locks are granted from then on.
	EndGrace Kind = 3
	// Raise raises the group to rules version Version.
	Raise Kind = 4
	// Open opens a session of Opener with Nonce, TTL and Record.
	Open Kind = 5
	// Attach begins an attachment of Session. It carries Epoch, Live, in Number the first number
	// that the session has not used, and the Nonce of the session's Open. The Nonce protects
	// against an instance that attaches to a session by mistake.
	Attach Kind = 6
	// Leaving marks Session's instance as about to leave.
	Leaving Kind = 7
	// Close ends Session and all its requests.
	Close Kind = 8
	// Expire ends Session like Close, if the log entry that carries it is of term Term. Holds with
	// a Delay stay until Expire is repeated.
	Expire Kind = 9
	// Acquire asks for the lock Key as request Number, or for Key and Keys together. With a Token
	// it instead resumes the hold of Key with this token, including all other keys of the hold. The
	// hold may be of any session. With Try it never queues. Permits and Of define which requests
	// can share the lock, and Most bounds how many requests may wait before it. Owner is the
	// request during whose hold this request was made. Value is shown to other sessions.
	Acquire Kind = 10
	// Release ends request Number, whether it is granted or waits.
	Release Kind = 11
	// Cancel does the same as Release; there are two kinds so that a log shows the difference.
	Cancel Kind = 12
	// Adopt changes the charter: SessionTTL to TTL, the budgets to SessionBytes and GroupBytes, and
	// Settings. A field that is zero or empty changes nothing. Existing sessions keep their TTL,
	// since their clients rely on it. A smaller budget removes nothing that exists.
	Adopt Kind = 13
	// Evict ends the request that holds Key with Token, including all its other keys. The request
	// may be of any session. Record describes the instance that asks for the eviction, and Value is
	// the reason. Number is chosen by the sender, and the result returns it.
	Evict Kind = 14
	// Detach removes request Number from Session. A hold with a Delay stays as if its session had
	// expired, until the delay has passed or an Acquire resumes it. Any other request ends. Since
	// version 2 of the rules a Value gives the reason if the holder did not ask for the Detach.
	Detach Kind = 15
	// Put sets the data of Key to Value, or removes it if Value is empty. It succeeds only if the
	// present data has the given Revision. A zero Revision means that there must be no data. Nonce
	// makes Put idempotent until another Put changes the data.
	Put Kind = 16
)

// Command is one input of the machine, decoded. Every command carries Rules, Session, Epoch and
// Number; its kind defines which other fields it uses, and only those are encoded.
//
// A Command is a plain value, safe for concurrent use as long as neither the Command nor its slices
// are changed.
type Command struct {
	// Rules is the lowest version of the rules that has this command and these fields. Zero means
	// 1.
	Rules uint32
	Kind  Kind
	// Session is the session that the command is for, and Epoch is the attachment of that session.
	Session SessionID
	Epoch   Epoch
	// Number is the number of the request. In Attach it is the first number that is not yet used.
	// In Evict and Put the sender chooses it, and the result returns it.
	Number Number
	// Key is the lock's name: 1 to Limits.KeyBytes bytes of UTF-8 without control characters.
	Key string
	// Keys are the keys that the request asks for besides Key, in ascending order and above Key.
	// With Key they are at most MaxKeys.
	Keys []string
	Try  bool
	// Permits is the number of permits that the request takes, and the field Of is the total that
	// it names. If both are zero, the request is exclusive. If Permits is 1 and the total is zero,
	// the request is shared, as by readers. Otherwise the lock is a semaphore: Permits <= Of, Of >
	// 1.
	Permits, Of uint32
	// Owner is the number of the request during whose hold this request was made. It must be lower
	// than Number. Zero means that there is no owner.
	Owner Number
	// Most is the number of waiting requests at which this request is refused. Zero means that only
	// the group's limit applies.
	Most uint32
	// Delay is how long the lock stays taken after the session of its holder has expired, or after
	// Detach. It is at most MaxDelay, in whole milliseconds. The leader measures it.
	Delay time.Duration
	// Notice asks for a notice when the request holds the lock and another request waits for the
	// lock.
	Notice bool
	// Value is shown to requests that wait for the holder. It is opaque, at most MaxValueBytes
	// long. Append only reads it; Decode returns a copy.
	Value []byte
	// Token is the token of a present hold.
	Token Token
	// Revision is the revision of the data that a Put replaces.
	Revision Revision
	Term     uint64
	// Nonce is a random value, chosen by the sender, that identifies repetitions. It does not prove
	// an identity, since every voter has it.
	Nonce  Nonce
	Opener Opener
	// TTL is the TTL that the opener asks for. A session gets at most the group's TTL, and zero
	// asks for the group's TTL. In Adopt it is the group's new TTL, and zero means no change.
	// Negative values cannot be decoded.
	TTL time.Duration
	// Record describes the instance to its peers. It is opaque, at most MaxRecordBytes long. Append
	// only reads it; Decode returns a copy.
	Record []byte
	// Live names the requests that the sender still wants, all below Number, in ascending ranges
	// without overlap.
	Live       []Range
	WallUnixMS int64
	Version    uint32
	// Settings are the group's new settings. Empty means no change. They are opaque, at most
	// MaxSettingsBytes long. Append only reads them; Decode returns a copy.
	Settings []byte
	// SessionBytes and GroupBytes are the group's new budgets, at most 2^50 each. Zero means no
	// change.
	SessionBytes, GroupBytes uint64
}

// Header is the beginning of every command. It is the same at every version of the rules, so that a
// refusal can name a command that is too new to be decoded.
type Header struct {
	Rules   uint32
	Kind    Kind
	Session SessionID
	Epoch   Epoch
	Number  Number
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
	}
	return k.laterName()
}
