package sim

import "time"

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
	Adopted                              int           // changes of a setting of the group, as its leaders saw them
	Changes, Replaced, Leaves, Recovered int           // configurations; voters in the place of others; votes handed over; groups given up by people
	Leaderless                           time.Duration // the longest time without a leader
}

// Add adds up runs.
func (s *Stats) Add(o Stats) {
	s.Calls += o.Calls
	s.Granted += o.Granted
	s.Failed += o.Failed
	s.Lost += o.Lost
	s.Cancelled += o.Cancelled
	s.Released += o.Released
	s.Refused += o.Refused
	s.Entries += o.Entries
	s.Terms += o.Terms
	s.Groups += o.Groups
	s.Expired += o.Expired
	s.Snapshots += o.Snapshots
	s.SnapshotsSent += o.SnapshotsSent
	s.Between += o.Between
	s.Ended += o.Ended
	s.Retired += o.Retired
	s.Events += o.Events
	s.Recorded += o.Recorded
	s.Shared += o.Shared
	s.Permits += o.Permits
	s.Several += o.Several
	s.Nested += o.Nested
	s.Behind += o.Behind
	s.Crowded += o.Crowded
	s.Deadlocks += o.Deadlocks
	s.Full += o.Full
	s.Forced += o.Forced
	s.Overdue += o.Overdue
	s.Wanted += o.Wanted
	s.Delayed += o.Delayed
	s.Detached += o.Detached
	s.Resumed += o.Resumed
	s.Checked += o.Checked
	s.Adopted += o.Adopted
	s.Changes += o.Changes
	s.Replaced += o.Replaced
	s.Leaves += o.Leaves
	s.Recovered += o.Recovered
	s.Leaderless = max(s.Leaderless, o.Leaderless)
}
