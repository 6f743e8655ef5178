package lockfsm

import (
	"errors"
	"fmt"
	"time"
)

// Limits bounds the state that callers can make the group store. The limits are part of the
// charter, because replicas with different limits would diverge. Commands that free memory are
// exempt.
type Limits struct {
	// KeyBytes is the longest key, in bytes.
	KeyBytes uint32
	// WaitersPerLock bounds the requests that wait for one lock, without its holders.
	WaitersPerLock uint32
	// EntriesPerSession bounds the entries of one session, waiting and granted together.
	EntriesPerSession uint32
	Sessions          uint32
	// SessionBytes is the budget of one session, GroupBytes that of all sessions, locks and data. They
	// bound the memory that these may cost a voter, by the charges of budget.go. Adopt can change
	// both.
	SessionBytes, GroupBytes uint64
}

// DefaultLimits returns the limits of a new group: keys of 512 bytes, 65,536 waiters per lock,
// 1,048,576 entries per session, 131,072 sessions, 64 MiB of memory per session and 256 MiB for the
// group.
func DefaultLimits() Limits {
	return Limits{KeyBytes: 512, WaitersPerLock: 65_536, EntriesPerSession: 1_048_576, Sessions: 131_072,
		SessionBytes: 64 << 20, GroupBytes: 256 << 20}
}

// Charter is the configuration with which a group is founded. It is the same on every replica.
// Commands can change Rules, SessionTTL, Settings and the budgets of Limits. It is a plain value,
// except for Settings.
type Charter struct {
	// Group is the ID of the group. The rules do not read it.
	Group uint64
	// FoundedUnixMS is the founding time: positive, before 2109. The first revision follows from it.
	FoundedUnixMS int64
	// Rules is the rules version in force: at the founding, 1 to RulesVersion.
	Rules uint32
	// SessionTTL is positive. It is the longest TTL that a session gets when it is opened. Sessions
	// opened under a longer one keep theirs.
	SessionTTL time.Duration
	// Grace is the time after the founding in which no lock is granted. Zero means none. The leader
	// measures it and proposes EndGrace.
	Grace  time.Duration
	Limits Limits
	// Settings are what the instances have agreed on beyond the rules. They are opaque, at most
	// MaxSettingsBytes long. New copies them. [Machine.Charter] shares them with the machine: the
	// caller must not change them, and they stay valid.
	Settings []byte
}

const (
	// revisionBits is the room for revisions within one millisecond.
	revisionBits = 21
	// maxRevision keeps revisions, and with them tokens, positive as int64.
	maxRevision Revision = 1<<63 - 1
	// revisionReserve is more than one command can use: one revision for itself and one per lock. A
	// machine that has fewer left fails rather than wrap around.
	revisionReserve Revision = 1 << 40
	// maxFoundedUnixMS leaves a second such reserve above the first revision.
	maxFoundedUnixMS = 1<<(63-revisionBits) - 1<<(41-revisionBits)
)

// validate reports every error of the charter to a build that knows the rules up to newest.
func (c Charter) validate(newest uint32) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.FoundedUnixMS <= 0 || c.FoundedUnixMS > maxFoundedUnixMS {
		bad("FoundedUnixMS is %d; it must be positive and before the year 2109: is the clock set?", c.FoundedUnixMS)
	}
	if c.Rules == 0 {
		bad("Rules is 0; the first version is 1")
	}
	if c.Rules > newest {
		bad("Rules is %d, this build knows up to %d: run a newer build: %w", c.Rules, newest, ErrRules)
	}
	if c.SessionTTL <= 0 {
		bad("SessionTTL is %v; it must be positive", c.SessionTTL)
	}
	if c.Grace < 0 {
		bad("Grace is %v; it must not be negative; 0 means none", c.Grace)
	}
	if c.Limits.KeyBytes == 0 || c.Limits.WaitersPerLock == 0 || c.Limits.EntriesPerSession == 0 ||
		c.Limits.Sessions == 0 {
		bad("Limits has a zero in %+v; start from DefaultLimits", c.Limits)
	}
	for _, budget := range [...]uint64{c.Limits.SessionBytes, c.Limits.GroupBytes} {
		if budget == 0 || budget > maxBudget {
			bad("Limits has a budget of %d bytes; it must lie between 1 and %d", budget, uint64(maxBudget))
		}
	}
	if len(c.Settings) > MaxSettingsBytes {
		bad("Settings has %d bytes, more than %d", len(c.Settings), MaxSettingsBytes)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("lockfsm: charter: %w", errors.Join(errs...))
}

// firstRevision is the revision of an unborn group.
func (c Charter) firstRevision() Revision {
	return Revision(c.FoundedUnixMS) << revisionBits
}
