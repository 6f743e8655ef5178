package lockfsm

import "time"

// SessionID names a session. It is the revision at which the session was opened, so it is never
// used twice, and the opener learns it from the result of Open. Zero is no session.
type SessionID uint64

// Revision counts the changes of the state. It starts at the founding time in Unix milliseconds
// shifted left by 21 bits, only rises, and stays a positive int64 until 2109. Zero is no revision.
type Revision uint64

// Token fences a resource. It is a revision taken for one grant only, so a later grant has a higher
// token. Zero means "not granted".
type Token uint64

// Number numbers the requests of one session. Numbers rise, may have gaps, and are never used
// twice. The first is 1; the largest is [MaxNumber].
type Number uint64

// Epoch counts the attachments of one session. A session starts at epoch 0, and each Attach must
// name a higher epoch.
type Epoch uint64

// Nonce makes Open idempotent. The opener draws it at random and sends the same nonce with each
// repetition of one Open. Zero is refused, since two openers that forget to draw a nonce would
// share a session.
type Nonce [16]byte

// Opener identifies the owner of a session: the authenticated ID of the instance that opened it,
// and the hash of the capability in its certificate, which is zero for a full instance. The leader
// sets it, and accepts commands for the session only from the same opener.
type Opener struct {
	Instance   [16]byte
	Capability [32]byte
}

// Range is a range of numbers, both ends included.
type Range struct{ First, Last Number }

const (
	// MaxNumber is the largest number that a command may carry. The number after it still fits in a
	// Number.
	MaxNumber Number = 1 << 63

	// MaxRecordBytes bounds the opaque record of a session.
	MaxRecordBytes = 4096

	// MaxKeys bounds the locks that one request can ask for.
	MaxKeys = 256

	// MaxValueBytes bounds the value of a request.
	MaxValueBytes = 1024

	// MaxDelay bounds the Delay of a request.
	MaxDelay = 7 * 24 * time.Hour

	// MaxDataBytes bounds the data of a key.
	MaxDataBytes = 4096

	// MaxData bounds how many keys have data.
	MaxData = 16_384

	// MaxSettingsBytes bounds the opaque settings of the group.
	MaxSettingsBytes = 4096
)
