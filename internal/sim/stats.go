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
	Between, Ended                                             int // entries applied while a snapshot was taken; snapshots that a restore has ended

	Shared, Permits, Several, Nested int // of those granted
	Behind, Crowded                  int // writers who came while others shared; permits asked for while somebody held some
	Deadlocks, Full                  int // refused: as a deadlock, since too many waited

	Detached, Resumed                int // holds that were let go of and stayed, and that were taken up
	Forced, Overdue, Wanted, Delayed int // holds ended by force, by themselves; holders told that somebody waits; holds that an expiry ended after a delay

	Checked                              int           // questions whether a lock is held that were answered
	Adopted                              int           // changes of a setting of the group
	Changes, Replaced, Leaves, Recovered int           // configurations; voters in the place of others; votes handed over; groups given up by people
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
