package lockfsm

import "time"

// SessionID identifies a session. It is the revision at which the session was opened, so it is
// never used twice. Zero is no session.
type SessionID uint64

// Revision counts the changes of the state. It starts at the founding time in Unix milliseconds
// shifted left by 21 bits, only rises, and stays a positive int64 until 2109. Zero is no revision.
type Revision uint64

// Token fences a resource. It is the revision of one grant, so a later grant has a higher token.
// Zero means "not granted".
type Token uint64

// Number identifies a request of a session. Numbers rise, may have gaps, and are never used twice.
// The first is 1, and the largest is [MaxNumber].
type Number uint64

// Epoch counts the attachments of one session. A session starts at epoch 0, and each Attach must
// name a higher epoch.
type Epoch uint64

// Nonce makes Open idempotent. The opener chooses it at random and sends the same nonce with each
// repetition of one Open. Zero is refused, since openers that forget to choose a nonce would share
// a session.
type Nonce [16]byte

// Opener identifies the owner of a session: the authenticated ID of the instance that opened it,
// and the hash of the capability in its certificate, or zero for a full instance. The leader sets
// the Opener, and accepts commands for the session only from the same opener. In an Open the hash
// is not encoded: it is that of the command's Rights.
type Opener struct {
	Instance   [16]byte
	Capability [32]byte
}

// Range is a range of numbers, both ends included.
type Range struct{ First, Last Number }

// Place is the place of a request in the queue of one of its keys: the key with index Key of the
// request, in ascending order.
type Place struct {
	Session SessionID
	Number  Number
	Key     uint8
}

const (
	// MaxNumber is the largest number of a command. The number after it still fits in a Number.
	MaxNumber Number = 1 << 63

	// MaxRecordBytes bounds the opaque record of a session.
	MaxRecordBytes = 4096

	// MaxFormerBytes bounds what an Attach claims of another instance.
	MaxFormerBytes = 96

	// MaxKeys bounds the locks of one request.
	MaxKeys = 256

	// MaxValueBytes bounds the value of a request.
	MaxValueBytes = 1024

	// MaxDelay bounds the Delay of a request.
	MaxDelay = 7 * 24 * time.Hour

	// MaxDataBytes bounds the data of a key.
	MaxDataBytes = 4096

	// MaxData bounds how many keys have data.
	MaxData = 16_384

	// MaxReserved bounds the Count of a Reserve.
	MaxReserved = 65_536

	// MaxProof bounds the places in the Proof of a Refuse.
	MaxProof = 200

	// MaxSettingsBytes bounds the opaque settings of the group.
	MaxSettingsBytes = 4096
)

// Cause is the reason why a hold ended.
type Cause uint8

// The values are sent to other instances and never change.
const (
	// Released: the holder released the hold, or did not name its request in an Attach.
	Released Cause = 1
	// Expired: the session of the hold was not renewed in time, or a Detach or a Lapse ended the hold
	// and gave How.Reason.
	Expired Cause = 2
	// Closed: the session of the hold was closed.
	Closed Cause = 3
	// Evicted: the hold was ended by force.
	Evicted Cause = 4
	// Resumed: another session resumed the hold. If the session of the hold was not gone, How.By is
	// the record of the other session.
	Resumed Cause = 5
	// Revoked: an operator has ended the session of the hold before its TTL had passed. How.By names
	// the operator's instance or program, and How.Reason is the operator's reason.
	Revoked Cause = 6
	// Superseded: the node of the session has ended, as a later start of the same node has shown, and
	// the TTL had not passed yet. How.Reason names that start.
	Superseded Cause = 7
)

// early reports whether a session with this cause has ended before its TTL had passed, by Expire.
func early(cause Cause) bool { return cause == Revoked || cause == Superseded }
