// Package tick runs a job once per tick of a schedule, on one instance of a fleet. Every instance
// calls [Run] with the same job:
//
//	err := tick.Run(ctx, node, tick.Job{
//		Name:     "reports/nightly",
//		Schedule: tick.Every(24 * time.Hour), // midnight UTC; or a schedule of a cron library
//		Run:      func(ctx context.Context, t tick.Tick) error { return report(ctx, t.Time, t.Token) },
//	})
//
// Releasing the lock when the job ends is not enough: an instance whose clock is behind would then
// run the tick again. So the instance that runs a tick keeps its lock until the clock of every
// instance has passed the time in which the tick may begin.
//
// # The life of a tick
//
// T is the nominal time of a tick, by the schedule. Each instance uses its own wall clock:
//
//	T                T+Late                 T+Late+Skew
//	├── may begin ───┤── may not begin ─────┤ the lock is free
//
// From T to T+Late an instance waits for the lock of the tick. The instance that gets it runs the
// job, and keeps the lock until T+Late+Skew, or until the job returns if that is later. At T+Late
// all other instances give the tick up. If ticks are close together both times shrink, so that the
// lock is free before the next tick: Skew is at most half the time between the two, and Late what
// is left. With Every(time.Second) both are 0.5 s.
//
// # Guarantees
//
//   - A tick whose job has returned does not run again; a job that returns an error counts too,
//     unless its context had ended. The group records the last 16 finished ticks of a job as data
//     of the key Name/finished, and an instance that gets the lock of a tick reads that first. The
//     record exists as long as the group. Before it is written, and with a locker that is not a
//     [Store], the lock of the tick replaces it. That works as long as the wall clocks of any two
//     instances differ by at most Skew (as shrunk), and the instance that ran the tick neither
//     crashes nor loses its lock before the end of the tick.
//   - A running job also holds the lock of its Name, so two runs never hold it at the same time,
//     whatever the clocks show. Code that locks Name keeps the job from running.
//   - [Tick.Token] is the token of that lock: it rises from run to run of a job. A resource that
//     compares tokens refuses what a run writes after the next one has begun.
//   - Ticks that could not begin in time are skipped and never made up. [Tick.Missed] counts those
//     that this instance knows.
//   - A tick begins when the first clock reaches it, so the instance whose clock is ahead runs most
//     ticks.
//
// A job that runs longer than its period does not overlap with itself. The next tick waits for it
// until T+Late. If the job is still running then, the tick is skipped, and the instance with the
// lock of that tick reports [ErrStillRunning].
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run and the job run on the goroutine that calls
// Run.
//
// # Leaving
//
// When ctx ends or the node leaves, the context of a running job ends. If the job then returns an
// error, its lock is released at once, and another instance may take the tick over. If the job has
// returned before and the tick is recorded, Run returns at once. Without a record (the locker is
// not a [Store], or the data had no room) Run keeps the lock to the end of the tick. Otherwise the
// next in the queue would run it again. So Run returns up to Late+Skew after the tick, 10 s by
// default, and Leave waits for that as for any holder. When the time of Leave is over (10 s unless
// its context says otherwise), the lock is left to expire.
//
// # Failure
//
// A tick runs a second time, after the first run has ended or lost its lock, in these cases:
//
//   - The instance crashes or loses its lease during the job, or before the tick is recorded.
//     Another instance gets the lock when the session expires, within SessionTTL and one failover,
//     and runs the tick if it may still begin. If a job must be taken over, set Late above
//     SessionTTL: 15 s or more with the default of 10 s. If a job must not be repeated, keep Late
//     short: then the tick of a crash is usually lost.
//   - Clocks differ by more than Skew, and the tick is not recorded, or no longer. Tokens do not
//     refuse the later run, since it has the higher one.
//
// If an effect must not happen twice, record its [Tick.Time] in the same transaction.
//
// A tick does not run at all if every instance is busy, stopped or without a majority from T to
// T+Late, or if its instance crashes and no other takes it over. A job that fails has used its
// tick; [Job.Report] gets the error. A panic of the job continues through Run.
//
// If a wall clock is set forward, ticks are skipped. If it is set back by more than Skew, Run
// starts over at the new time. Run reads the clock at least once a minute while it waits.
//
// # Limits
//
// Names have 1 to 400 bytes. Ticks are at least 10 ms apart. Missed stops at 1,000. One Run costs
// one lock for its whole life, and two more during a tick; every other instance waits in the queue
// of the tick.
//
// # Refused alternatives
//
// One time for "may not begin" and for "free": an instance whose clock is behind would get the lock
// the moment the holder releases it, and run the tick again. A leader that runs all jobs: one
// instance has all the work, and a tick is lost whenever the leader changes. Only a record of
// finished ticks: it would need a store that outlives the group.
package tick
