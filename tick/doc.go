// Package tick runs a job once per tick of a schedule, on one instance of a fleet. Every instance
// calls [Run] with the same job:
//
//	err := tick.Run(ctx, node, tick.Job{
//		Name:     "reports/nightly",
//		Schedule: tick.Every(24 * time.Hour), // midnight UTC; or a schedule of a cron library
//		Run:      func(ctx context.Context, t tick.Tick) error { return report(ctx, t.Time, t.Token) },
//	})
//
// The instance that runs a tick keeps the lock of the tick until the clock of every instance has
// passed the time in which the tick may begin. Otherwise an instance whose clock is behind would
// run the tick again.
//
// # The times of a tick
//
// T is the nominal time of a tick, which the schedule returns. Each instance uses its own wall
// clock:
//
//	T                T+Late                 T+Late+Skew
//	├── may begin ───┤── may not begin ─────┤ the lock is free
//
// From T to T+Late every instance waits for the lock of the tick. The instance that gets the lock
// runs the job, and keeps the lock until T+Late+Skew, or until the job returns if that is later.
// At T+Late all other instances stop waiting. If ticks are close together, Run reduces Skew to at
// most half the time between two ticks, and then reduces Late so that Late+Skew is at most that
// time.
//
// # Guarantees
//
//   - A tick does not run again after its job has returned nil. It does not run again after an
//     error either, unless the context of the job had ended. The group records the last 16
//     finished ticks of a job as data of the key Name/finished. An instance that gets the lock of
//     a tick first reads this record, which exists as long as the group. Until a tick is
//     recorded, only its lock keeps it from running again. If the locker is not a [Store], ticks
//     are never recorded. The lock is enough if two conditions hold until T+Late+Skew: the wall
//     clocks of any two instances differ by at most Skew (reduced as above), and the instance
//     that ran the tick neither crashes nor loses its lock.
//   - A running job also holds the lock of its Name, so two runs never hold that lock concurrently.
//     While other code locks Name, the job does not run.
//   - [Tick.Token] is the token of that lock: it increases from run to run of a job.
//   - Ticks that could not begin in time are skipped and do not run later. [Tick.Missed] counts the
//     skipped ticks of this instance.
//   - A tick begins when the first clock reaches T, so the instance whose clock is ahead runs most
//     ticks.
//
// A job that runs longer than its period does not overlap with itself. The next tick waits for the
// job until T+Late. If the job is still running then, the tick is skipped, and the instance with
// the lock of that tick reports [ErrStillRunning].
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Run and the job run on the goroutine that calls
// Run.
//
// # Leaving
//
// When ctx ends or the node leaves, the context of a running job ends. If the job then returns an
// error, its locks are released immediately, and another instance may run the tick. If the job has
// returned before and the tick is recorded, Run returns immediately. If the tick is not recorded
// (because the locker is not a [Store], or the group had no room for the data), Run keeps the lock
// until T+Late+Skew. So Run may return up to Late+Skew after T, 10 s by default. Leave waits for
// Run as for any holder. If Leave stops waiting before Run returns, the lock is left to expire.
//
// # Failure
//
// A tick runs a second time, after the first run has ended or lost its lock, in these cases:
//
//   - The instance crashes or loses its lease during the job, or before the tick is recorded.
//     Another instance gets the lock when the session expires, within SessionTTL and one failover,
//     and runs the tick if it may still begin. If another instance must then run the job, set Late
//     above SessionTTL: 15 s or more with the default of 10 s. If a job must not be repeated, set
//     Late to a short time: the tick is then usually skipped after a crash.
//   - The job hangs: with [Job.MaxIdle] it has not called mortise.Beat with its context for that
//     time. It loses its locks up to a quarter of that time later, and another instance runs the
//     tick if it may still begin. If another instance must then run the job, set Late above 1.25
//     MaxIdle.
//   - Clocks differ by more than Skew, and the tick is not recorded or its record has been dropped.
//     Tokens do not protect against this.
//
// If an effect must not happen twice, store [Tick.Time] in its transaction.
//
// A tick does not run at all if every instance is busy, stopped or without a majority from T to
// T+Late, or if the instance with the lock of the tick crashes and no other instance gets that lock
// in time. A tick whose job fails is not repeated; [Job.Report] gets the error. A panic of the job
// reaches the caller of Run.
//
// A job that hangs and has no MaxIdle keeps its lock as long as its process lives, so that no
// instance runs a later tick. With MaxIdle the other instances run the later ticks. The instance of
// the job takes part again when the job has returned, and Report gets the error then. A tick's own
// lock has no MaxIdle: only the time in the job counts, and not the wait until T+Late+Skew.
//
// If a wall clock is set forward, ticks are skipped. If it is set back by more than Skew, Run
// continues with the ticks of the new time, and may repeat a tick that is not recorded. Run reads
// the clock at least once a minute while it waits.
//
// # Limits
//
// Names have 1 to 400 bytes. Ticks are at least 10 ms apart. Each call of Run holds one lock, and
// two more while it runs the job of a tick. Every other instance waits in the queue of the tick.
package tick
