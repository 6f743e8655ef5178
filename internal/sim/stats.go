package sim

import (
	"reflect"
	"time"
)

// Stats counts what a run has met.
type Stats struct {
	Calls, Granted, Failed, Lost, Cancelled, Released, Refused int
	Entries, Terms, Groups, Expired, Snapshots, SnapshotsSent  int
	Retired, Events, Recorded                                  int
	// Between counts entries applied while a snapshot was taken, Ended snapshots that a restore has
	// ended.
	Between, Ended int

	Shared, Permits, Several, Nested int // among those granted
	// Behind counts writers that came while others shared, Crowded permits asked for while some were
	// held.
	Behind, Crowded int
	Deadlocks, Full int // refused: as a deadlock, or since too many waited

	Detached, Resumed int // holds that were detached, and that were resumed
	// Forced counts holds ended by force, Overdue holds that ended by themselves, Wanted holders told
	// of a waiter, Delayed holds that an expiry ended after a delay.
	Forced, Overdue, Wanted, Delayed int

	Checked int // answered questions whether a lock is held
	Adopted int // changes of a setting of the group
	// Changes counts configurations, Replaced voters in the place of others, Leaves votes handed over,
	// Recovered groups that operators gave up.
	Changes, Replaced, Leaves, Recovered int
	Leaderless                           time.Duration // the longest time without a leader
}

// Add adds the counts of another run.
func (s *Stats) Add(o Stats) {
	longest := max(s.Leaderless, o.Leaderless)
	sum, more := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	s.Leaderless = longest
}
