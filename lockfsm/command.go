package lockfsm

import "time"

// Kind says what a command does. The values are part of the log's format: they are fixed for ever,
// and new ones are added at the end.
//
// The machine does not know who sent a command. Stamp, Born, EndGrace, Raise, Expire, Adopt, Evict
// and Put are the leader's own: whoever takes commands from other instances must let only the
// others pass.
type Kind uint8

const (
	// Stamp carries the leader's wall clock in WallUnixMS. The state keeps the largest that it has
	// met and uses it for one thing: to tell people since when a lock is held.
	Stamp Kind = 1
	// Born founds the group. No other command has any effect before it.
	Born Kind = 2
	// EndGrace ends the grace: from now on locks are granted.
	EndGrace Kind = 3
	// Raise lifts the group to rules version Version.
	Raise Kind = 4
	// Open opens a session of Opener with Nonce, TTL and Record.
	Open Kind = 5
	// Attach begins an attachment of Session: Epoch, Live, in Number the first number that the
	// session has not used, and the Nonce that the session was opened with, which proves whose it
	// is.
	Attach Kind = 6
	// Leaving marks Session's instance as about to leave.
	Leaving Kind = 7
	// Close ends Session and everything in it.
	Close Kind = 8
	// Expire ends Session like Close, if the log entry that carries it is of term Term. What it
	// holds with a Delay stays until Expire comes again.
	Expire Kind = 9
	// Acquire asks for the lock Key as request Number, or for several at once: Key and Keys. With a
	// Token it takes up the hold of Key that has it instead, whoever's it is, of a request for
	// several locks all. With Try it never queues. Permits and Of say with whom it can share them,
	// Most how many may wait before it, Owner what it belongs to, and Value what others are shown
	// of it.
	Acquire Kind = 10
	// Release gives back what request Number holds or waits for.
	Release Kind = 11
	// Cancel withdraws request Number. It does what Release does; the two are kept apart for
	// whoever reads a log.
	Cancel Kind = 12
	// Adopt changes what the group was founded with: SessionTTL to TTL, the budgets to SessionBytes
	// and GroupBytes, if they are not 0, and Settings, if there are any. Sessions that live keep
	// their TTL: their clients count on it. What is over a budget stays.
	Adopt Kind = 13
	// Evict ends the request that holds Key with Token, whoever's it is; of a request for several
	// locks all. Record says who wants it, and Value why. Number is the sender's, and comes back
	// with the result.
	Evict Kind = 14
	// Detach lets go of what request Number holds without ending it: if it has a Delay it stays, as
	// if its session had expired, until that has passed or an Acquire takes it up; else, and if it
	// does not hold, it ends. Since version 2 of the rules Value says why, if that is not its
	// holder's doing.
	Detach Kind = 15
	// Put changes the data of Key to Value, or takes it away if there is none, if it still is what
	// it was at Revision; 0: if there is none. Nonce makes it idempotent, as long as nobody else
	// has changed it since. Number is the sender's, and comes back with the result.
	Put Kind = 16
)

// Command is one input of the machine, decoded. Each kind uses the fields that its comment names,
// besides Rules, Session, Epoch and Number, which every command carries; the others are not
// encoded.
//
// A Command is a plain value. It is safe for concurrent use as long as nobody changes it or its
// slices.
type Command struct {
	// Rules is the lowest rules version that knows this command, with these fields. 0 means 1.
	Rules uint32
	Kind  Kind
	// Session and Epoch say on whose behalf the command comes, and on which of its attachments.
	Session SessionID
	Epoch   Epoch
	// Number is the request's number; for Attach it is the first number not yet used.
	Number Number
	// Key is the lock's name: 1 to Limits.KeyBytes bytes of UTF-8 without control characters.
	Key string
	// Keys are the further locks that the request wants, all or none: ascending, above Key, at most
	// MaxKeys with it.
	Keys []string
	Try  bool
	// Permits is how much of a lock the request takes, and Of how much there is, by its own word.
	// Both 0: the whole lock, as a mutex does. Of 0 with Permits 1: beside any number of others, as
	// a reader does. Else a semaphore: Permits <= Of, Of > 1.
	Permits, Of uint32
	// Owner is the number of the request under whose lock this one is made, which is lower, or 0:
	// so the group can tell when they wait for each other in a circle.
	Owner Number
	// Most refuses the request if so many wait already; 0: only the group's limit does.
	Most uint32
	// Delay is for how long the lock stays taken when the session of its holder expires, or after
	// Detach: at most MaxDelay, in whole milliseconds. Somebody else counts it and commits Expire
	// once more.
	Delay time.Duration
	// Notice asks for a word when the request holds the lock and somebody waits for it.
	Notice bool
	// Value is shown to those who meet the holder. It is opaque here, at most MaxValueBytes long.
	// Append only reads it; Decode returns a copy.
	Value []byte
	// Token is that of a present hold.
	Token Token
	// Revision is that of the data that a Put replaces.
	Revision Revision
	// Term is the term in which an expiry was decided.
	Term uint64
	// Nonce is the opener's, random: by it a repetition is known. It proves nothing, since every
	// voter has it.
	Nonce Nonce
	// Opener is what the session belongs to.
	Opener Opener
	// TTL is what the opener asks for. The group's is the upper bound, and what 0 stands for. For
	// Adopt it is the group's from now on, 0 for no change. Negative values cannot be decoded.
	TTL time.Duration
	// Record describes the instance to its peers. It is opaque here, at most MaxRecordBytes long.
	// Append only reads it; Decode returns a copy.
	Record []byte
	// Live names the requests that the sender still wants: ascending, apart from each other, all of
	// them below Number.
	Live       []Range
	WallUnixMS int64
	Version    uint32
	// Settings are the group's from now on, none for no change. They are opaque here, at most
	// MaxSettingsBytes long. Append only reads them; Decode returns a copy.
	Settings []byte
	// SessionBytes and GroupBytes are the group's budgets from now on, 0 for no change. At most
	// 2^50.
	SessionBytes, GroupBytes uint64
}

// Header is what all commands have in common. It stands at the start of every command, at every
// rules version, so that a command that is too new can still be refused by name.
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
