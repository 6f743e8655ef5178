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
	// Stamp carries the leader's wall clock in WallUnixMS. The state keeps the largest stamp, which
	// is only used to show since when a lock is held.
	Stamp Kind = 1
	// Born founds the group. Every other command is refused before it.
	Born Kind = 2
	// EndGrace ends the grace: locks are granted from then on.
	EndGrace Kind = 3
	// Raise raises the group to rules version Version.
	Raise Kind = 4
	// Open opens a session of Opener with Nonce, TTL and Record.
	Open Kind = 5
	// Attach begins an attachment of Session. It carries Epoch and Live, the first unused number of
	// the session in Number, and the Nonce of its Open, so that an instance cannot attach a wrong
	// session by mistake.
	Attach Kind = 6
	// Leaving marks Session's instance as about to leave.
	Leaving Kind = 7
	// Close ends Session and everything in it.
	Close Kind = 8
	// Expire ends Session like Close, if the log entry that carries it is of term Term. Holds with a
	// Delay stay until Expire is repeated.
	Expire Kind = 9
	// Acquire asks for the lock Key as request Number, or for Key and Keys together. With a Token
	// it instead resumes the hold that has this token and Key, of any session, with all its keys.
	// With Try it never queues. Permits and Of define which requests can share the lock. Most
	// limits how many may wait already. Owner is the request under whose lock it is made. Value is
	// shown to other callers.
	Acquire Kind = 10
	// Release gives back what request Number holds or waits for.
	Release Kind = 11
	// Cancel does the same as Release; there are two kinds so that a log shows the difference.
	Cancel Kind = 12
	// Adopt changes the charter: SessionTTL to TTL, the budgets to SessionBytes and GroupBytes, and
	// Settings. A field that is zero or empty changes nothing. Live sessions keep their TTL,
	// because their clients rely on it. State that exceeds a smaller budget stays.
	Adopt Kind = 13
	// Evict ends the request that holds Key with Token, of any session, with all its keys. Record
	// names the instance that asks for it, and Value the reason. Number is the sender's; the result
	// returns it.
	Evict Kind = 14
	// Detach gives up request Number without ending its hold at once. A hold with a Delay stays as if
	// its session had expired, until the delay has passed or an Acquire resumes it. Any other request
	// ends. Since version 2 of the rules a Value gives the reason if the holder did not ask for the
	// end.
	Detach Kind = 15
	// Put sets the data of Key to Value, or removes it if Value is empty. It succeeds only if the data
	// is still the one of Revision. Zero means that there must be none. Nonce makes Put idempotent
	// until another Put changes the data. Number is the sender's; the result returns it.
	Put Kind = 16
)

// Command is one input of the machine, decoded. Every command carries Rules, Session, Epoch and
// Number; its kind defines which other fields it uses, and only those are encoded.
//
// A Command is a plain value, safe for concurrent use as long as it and its slices are not changed.
type Command struct {
	// Rules is the lowest rules version that knows this command, with these fields. Zero means 1.
	Rules uint32
	Kind  Kind
	// Session and Epoch name the session that the command speaks for, and its attachment.
	Session SessionID
	Epoch   Epoch
	// Number is the number of the request; in Attach it is the first unused number.
	Number Number
	// Key is the lock's name: 1 to Limits.KeyBytes bytes of UTF-8 without control characters.
	Key string
	// Keys are further locks that the request wants together with Key. They ascend and are above
	// Key. With Key there are at most MaxKeys.
	Keys []string
	Try  bool
	// Permits is the number of permits that the request takes, and the field Of is the total that
	// it names. If both are zero, it takes the whole lock, as a mutex. Permits 1 with Of zero
	// shares the lock with any number of such requests, as a reader. Otherwise the lock is a
	// semaphore, with Permits <= Of and Of > 1.
	Permits, Of uint32
	// Owner is the number of the request under whose lock this one is made, which must be lower. Zero
	// means none.
	Owner Number
	// Most refuses the request if that many wait already. Zero means only the group's limit.
	Most uint32
	// Delay is the time for which the lock stays taken after the session of its holder has expired,
	// or after Detach: at most MaxDelay, in whole milliseconds. The leader measures it.
	Delay time.Duration
	// Notice asks for a notice when the request holds the lock and another one waits for it.
	Notice bool
	// Value is shown to requests that wait for the holder. It is opaque, at most MaxValueBytes long.
	// Append only reads it; Decode returns a copy.
	Value []byte
	// Token is the token of a present hold.
	Token Token
	// Revision is the revision of the data that a Put replaces.
	Revision Revision
	Term     uint64
	// Nonce is random, chosen by the opener, and identifies repetitions. It proves nothing: every
	// voter has it.
	Nonce  Nonce
	Opener Opener
	// TTL is the TTL that the opener asks for, at most that of the group. Zero means that of the
	// group. In Adopt it is the new TTL of the group, and zero means no change. Negative values
	// cannot be decoded.
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

// Header is the part that begins every command at every rules version, so that a refusal can name a
// command that is too new to be read.
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
