package lockfsm

import "time"

// SessionID names a session. It is the revision at which the session was opened, so it is never
// used twice, and is unknown before the answer to Open. Zero is no session.
type SessionID uint64

// Revision counts the changes of the state. It starts at the founding time in Unix milliseconds
// shifted left by 21 bits, only rises, and stays a positive int64 until 2109. Zero is no revision.
type Revision uint64

// Token fences a resource. It is a revision taken for one grant only, so a later grant has a higher
// token. Zero means "not granted".
type Token uint64

// Number numbers the requests of one session. Numbers rise, gaps are allowed, and none is used
// twice. The first is 1; the largest is [MaxNumber].
type Number uint64

// Epoch counts the attachments of one session. A session starts at epoch 0, and each Attach must
// name a higher one.
type Epoch uint64

// Nonce makes Open idempotent. The opener chooses it at random and uses it each time it sends the
// same Open. Zero is refused: two openers that forget to draw one would share a session.
type Nonce [16]byte

// Opener is what a session belongs to: the authenticated ID of the instance that opened it, and the
// hash of the capability in its certificate, which is zero for a full instance. The leader writes
// it, and lets only the same opener speak for the session.
type Opener struct {
	Instance   [16]byte
	Capability [32]byte
}

// Range is a range of numbers, both ends included.
type Range struct{ First, Last Number }

const (
	// MaxNumber is the largest number that a command may carry, so that there is always a next one.
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
