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
	// entries applied while a snapshot was taken; snapshots that a restore has ended
	Between, Ended int

	Shared, Permits, Several, Nested int // among those granted
	// writers that came while others shared; permits asked for while some were held
	Behind, Crowded int
	Deadlocks, Full int // refused: as a deadlock, since too many waited

	Detached, Resumed int // holds that were let go of and stayed, and that were taken up
	// holds ended by force, by themselves; holders told of a waiter; holds that an expiry
	// ended after a delay
	Forced, Overdue, Wanted, Delayed int

	Checked int // questions whether a lock is held that were answered
	Adopted int // changes of a setting of the group
	// configurations; voters in the place of others; votes handed over; groups given up by people
	Changes, Replaced, Leaves, Recovered int
	Leaderless                           time.Duration // the longest time without a leader
}

// Add adds up runs.
func (s *Stats) Add(o Stats) {
	longest := max(s.Leaderless, o.Leaderless)
	sum, more := reflect.ValueOf(s).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	s.Leaderless = longest
}
