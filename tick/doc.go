// Package tick runs a job once per tick of a schedule, on one instance of a fleet. Every instance
// calls [Run] with the same job:
//
//	err := tick.Run(ctx, node, tick.Job{
//		Name:     "reports/nightly",
//		Schedule: tick.Every(24 * time.Hour), // midnight UTC; or a schedule of a cron library
//		Run:      func(ctx context.Context, t tick.Tick) error { return report(ctx, t.Time, t.Token) },
//	})
//
// A lock that is released when the job ends is not enough: a job of a millisecond is over before
// the clock of another instance, two seconds behind, shows the tick, and there it would run again.
// So whoever runs a tick keeps the lock of that tick until the clock of every instance has passed
// the time in which the tick may begin.
//
// # The life of a tick
//
// T is the nominal time of a tick, by the schedule. Each instance goes by its own wall clock:
//
//	T                     T+Late                T+Late+Skew
//	├── it may begin ─────┤── nobody begins it ─┤ the lock is free, and nobody wants it
//
// From T to T+Late an instance waits for the lock of the tick. Whoever gets it runs the job and
// keeps the lock until T+Late+Skew, or until the job returns if that is later. At T+Late everybody
// else lets the tick go. Where ticks are close together both times shrink, so that the lock is free
// before the next tick: Skew is at most half the time between the two, and Late what is left. With
// Every(time.Second) both are 0.5 s.
//
// # Guarantees
//
//   - A tick whose job has returned (with an error too, unless its context had ended) does not run
//     again: the group records the last 16 finished ticks of a job as data of the key
//     Name/finished, and whichever instance gets the lock of a tick asks there first. The record
//     lives as long as the group. Between the return of the job and the record, and with a locker
//     that is no [Store], the lock of the tick stands for it, as long as the wall clocks of any two
//     instances differ by at most Skew (as shrunk) and the instance that ran it neither crashes nor
//     loses its lock before the end of the tick. See Failure for the rest.
//   - Two runs of one job never hold its lock at the same time, whatever the clocks say: while the
//     job runs its lock, whose key is Name, is held too. Whoever locks Name by hand holds the job
//     off.
//   - [Tick.Token] is the token of that lock: it rises from run to run of a job, whichever ticks
//     they belong to. A resource that compares tokens refuses what a run writes after it has lost
//     its lock and the next one has begun.
//   - Ticks are not caught up with: those that passed while nobody could begin them are skipped,
//     never run in a burst, and [Tick.Missed] says how many this instance knows of.
//   - There is no jitter: a tick begins when the first clock shows it. So the instance whose clock
//     is ahead runs most ticks, and nothing here spreads them.
//
// A job that runs longer than its period does not overlap with itself. The next tick waits for it
// until T+Late, on whichever instance has got that tick; if the job is still running then, the tick
// is skipped, and that instance reports [ErrStillRunning].
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run works in the goroutine that calls it, and the
// job runs there too.
//
// # Leaving
//
// When ctx ends or the node leaves, the context of a running job ends. If the job then returns an
// error its tick counts as not run, its lock is released at once, and another instance may take it
// over. If the job has returned before and the tick is recorded, Run returns at once. Without a
// record (the locker is no [Store], or the data had no room) Run keeps the lock to the end of the
// tick, for otherwise the next in the queue would run it again: Run returns up to Late+Skew after
// the tick, 10 s by default, and Leave waits for that as for any holder. Beyond the time that Leave
// has (10 s unless its context says more) the lock is left to expire.
//
// # Failure
//
// It is at least once, not exactly once. A tick runs a second time, one run after the other has
// ended or lost its lock:
//
//   - If the instance crashes or loses its lease in the middle of the job, or before the tick is
//     recorded, another instance gets the lock when the session expires, within SessionTTL and one
//     failover, and runs the tick if it may still begin by its own clock. With Late below
//     SessionTTL that hardly happens, and the tick of a crash is lost. A job that must be taken
//     over needs a Late of more than SessionTTL, 15 s or more with the default of 10 s; a job that
//     must not be repeated needs a short one.
//   - If clocks differ by more than Skew and the tick is not recorded, or no longer. The later run
//     has the higher token, so tokens do not refuse it. Tokens refuse only a run that goes on
//     although it lost its lock.
//
// What must not happen twice remembers, in the same transaction as its effect, the [Tick.Time] that
// it was done for.
//
// A tick runs not at all if every instance is busy, stopped or without a majority from T to T+Late,
// or if its instance crashes and nobody takes it over. A job that fails has had its tick; the error
// goes to [Job.Report]. A job that panics panics out of Run.
//
// A wall clock that is set forward skips ticks; one that is set back by more than Skew begins anew
// at what it shows. It is read at least once a minute while Run waits.
//
// # Limits
//
// Names of 1 to 400 bytes. Ticks at least 10 ms apart. Missed stops at 1,000. One Run costs one
// lock as long as it lives, and two more during a tick; every other instance waits in the queue of
// the tick.
//
// # Refused alternatives
//
// One time for "over" and for "free": an instance whose clock is behind the holder's would get the
// lock the moment the holder releases it, find the tick not over by its own clock, and run it
// again. A leader that runs all jobs: one instance has all the work, and a tick is lost whenever
// the leader changes. A record of what has run, in place of time: it would need a store that
// outlives the group, which the job has and we have not; so the record stands beside the time.
package tick
