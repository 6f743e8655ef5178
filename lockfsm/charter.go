package lockfsm

import (
	"errors"
	"fmt"
	"time"
)

// Limits bounds the state that callers can create. Commands that free something are exempt. It is
// part of the charter, because replicas with different limits would diverge.
type Limits struct {
	// KeyBytes is the longest key, in bytes.
	KeyBytes uint32
	// WaitersPerLock bounds the requests that wait for one lock, without its holders.
	WaitersPerLock uint32
	// EntriesPerSession bounds the keys that one session holds or waits for.
	EntriesPerSession uint32
	Sessions          uint32
	// SessionBytes is the budget of one session, and GroupBytes is the budget of all sessions,
	// locks and data together. Both bound the memory of a voter in bytes, as budget.go computes it.
	SessionBytes, GroupBytes uint64
}

// DefaultLimits returns the limits of a new group.
func DefaultLimits() Limits {
	return Limits{KeyBytes: 512, WaitersPerLock: 65_536, EntriesPerSession: 1_048_576, Sessions: 131_072,
		SessionBytes: 64 << 20, GroupBytes: 256 << 20}
}

// Charter contains the parameters with which a group is founded. Commands can change Rules,
// SessionTTL, Settings and the budgets of Limits. Copies of a Charter share only the bytes of
// Settings.
type Charter struct {
	// Group is the ID of the group. The machine does not use it.
	Group uint64
	// FoundedUnixMS is the founding time in Unix milliseconds, positive and before 2109. It
	// determines the first revision.
	FoundedUnixMS int64
	// Rules is the version of the rules that is in force. At the founding it is from 1 to
	// RulesVersion.
	Rules uint32
	// SessionTTL is the longest TTL of a new session. It must be positive. A session that already
	// has a longer TTL keeps it.
	SessionTTL time.Duration
	// Grace is the time after the founding in which the machine grants nothing. Zero means none.
	// The leader measures it and commits EndGrace.
	Grace  time.Duration
	Limits Limits
	// Settings are further settings that the instances have agreed on, at most MaxSettingsBytes
	// long. The machine does not decode them. New copies them. The bytes that [Machine.Charter]
	// returns never change, and its caller must not change them.
	Settings []byte
}

const (
	// A founding time that is one millisecond later raises the first revision by 2^revisionBits.
	revisionBits = 21
	// maxRevision keeps revisions and tokens positive as int64.
	maxRevision Revision = 1<<63 - 1
	// revisionReserve exceeds the number of revisions that one command can use: one for itself and
	// one for each lock. A machine with fewer revisions left fails, so that the counter cannot
	// overflow. A stay reserves further revisions, but none above those of maxFoundedUnixMS.
	revisionReserve Revision = 1 << 40
	// A group that is founded at maxFoundedUnixMS still has twice revisionReserve revisions.
	maxFoundedUnixMS = 1<<(63-revisionBits) - 1<<(41-revisionBits)
	// maxBudget keeps every sum of charges from overflowing.
	maxBudget = 1 << 50
)

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

func (c Charter) firstRevision() Revision { return revisionAt(c.FoundedUnixMS) }

// revisionAt returns the revision with which a group begins that is founded at a time.
func revisionAt(unixMS int64) Revision { return Revision(unixMS) << revisionBits }
