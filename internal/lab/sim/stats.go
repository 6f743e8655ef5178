package sim

import (
	"reflect"
	"time"
)

// Stats counts the events of a run.
type Stats struct {
	Calls, Granted, Failed, Lost, Cancelled, Released, Refused int
	Entries, Terms, Groups, Expired, Snapshots, SnapshotsSent  int
	Retired, Events, Recorded                                  int
	// Between counts the entries that were applied while a snapshot was taken. Ended counts the
	// snapshots that a Restore has ended.
	Between, Ended int

	Shared, Permits, Several, Nested int // granted calls of these kinds
	// Behind counts requests for a mutex that were made while its key was held shared. Crowded counts
	// requests for permits that were made while other permits were held.
	Behind, Crowded int
	Deadlocks, Full int // calls refused because of a deadlock or a full queue
	// SearchedOn counts the deadlocks that the leader found after the search in an Acquire had ended.
	SearchedOn int

	Detached, Resumed int
	// Mixed counts resumed holds that are not an exclusive lock of one key. Entered counts handles
	// that entered a lock again.
	Mixed, Entered    int
	Downgraded        int // confirmed downgrades
	Paths             int // calls that lock a node of a tree
	MixedModes        int // calls for keys and trees with different modes
	Jobs              int // jobs that began under their three limits
	Upgraded          int // granted upgrades
	UpgradedInside    int // granted upgrades under a second owner
	LoweredMixed      int // confirmed downgrades of holds with modes
	InDoubt, Regained int // doubts that began, and those after which the hold was good again
	// Forced counts holds that were ended by force. Overdue counts holds that ended by themselves.
	// Wanted counts holders that were notified of a waiter. Delayed counts holds that ended after an
	// expiry delay.
	Forced, Overdue, Wanted, Delayed int

	// Stays counts granted stays. Kept counts calls that got a pass. Passes counts all of them but
	// the first one of each stay. Ordinary counts sticky calls that had to ask the group.
	Stays, Kept, Passes, Ordinary int
	// Recalled counts stays that were given back after a recall. Yielded counts those that were given
	// back because a request was about to wait for them. InUse counts answers to requests with
	// Try. StaysLost counts stays lost at the deadline. NotForced counts orders to end a hold that
	// named the token of a pass.
	Recalled, Yielded, InUse, StaysLost, NotForced int
	// SharedStays counts granted stays in shared mode. Moved counts stays that were given back after a
	// change of the leader. UsedUp and Aged count stays whose tokens were used up, or too old for
	// callers that waited. Referred counts callers that a stay made ask the group.
	SharedStays, Moved, UsedUp, Aged, Referred int
	// RecallsLate counts recalls that were heard after more than a sixth of a TTL. RecallsLost counts
	// those that only a new attachment told. Crossed counts recalls that were under way during an
	// unlock or a release. Deaf counts recalls of stays to which nothing got from the leader, while
	// the leader heard them. Died counts free stays whose process ended.
	RecallsLate, RecallsLost, Crossed, Deaf, Died int

	// HungSnapshots counts snapshots for which the disk needed up to hungFor, and GivenUp the replicas
	// that gave their disk up. ForcedLate counts orders to end a hold by force that hung in a leader.
	HungSnapshots, GivenUp, ForcedLate int

	// Superseded counts orders to end the session of an earlier start, and StrayClaims the claims of
	// starts that came late or again.
	Superseded, StrayClaims int

	// Opened counts sessions that programs have opened, and Closed those whose end was confirmed.
	// Unopened counts those for which there was no room.
	Opened, Closed, Unopened int

	// AskedLate counts questions that were answered after their asker had ended or begun another
	// incarnation, and AnsweredLate the outcomes that came to a later incarnation of the asker.
	AskedLate, AnsweredLate int

	Checked int // answered queries about whether a lock is held
	// Reserved counts answers with IDs, and Written the data that was written under a hold.
	Reserved, Written int
	Adopted           int // changes of the settings of a group
	// Changes counts configurations. Replaced counts configurations that replace a voter. Leaves
	// counts instances that were allowed to stop while others remained. Recovered counts the calls of
	// Recover by operators.
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
