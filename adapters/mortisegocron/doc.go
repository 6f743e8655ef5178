// Package mortisegocron lets several schedulers of gocron run each job once per tick, with locks of
// mortise. A [Locker] spreads the runs over the instances, and an [Elector] lets one instance run
// all jobs.
//
//	locker := mortisegocron.NewLocker(node, tick.Every(time.Minute), mortisegocron.Options{})
//	_, err := scheduler.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(report),
//		gocron.WithName("reports"), gocron.WithDistributedJobLocker(locker))
//
// # How a tick is run once
//
// gocron asks the Locker at each tick in each instance, and does not pass the time of the tick. A
// lock that is held only while the job runs is not enough: if the job ends before the scheduler of
// another instance asks, it runs again there. So the Locker knows the schedule of its jobs. It
// takes the tick that is nearest to its own clock, and records in the group that this tick is
// taken. Only the instance that has made the record then waits for the lock of the job and runs it.
//
// A call that is further from every tick than Options.Late is for the last tick if the instance was
// not yet asked for it. Otherwise it is a run outside of the schedule, as after Job.RunNow: it
// takes no tick, and the scheduled runs take place as well.
//
// # Guarantees
//
//   - A tick of a job is run at most once in the group, even if the instance crashes during the
//     run, and even if an instance asks late. The record has the last 32 ticks of a job.
//   - Job.RunNow runs the job once, if no run goes on for longer than Options.Late. Two calls
//     within Options.Late, in the whole group, are one run.
//   - Two runs of a job do not overlap: the lock of the job is held from Lock to Unlock.
//   - [Locker.Held] returns the lock of the run, with its fencing token and its context, and
//     [Locker.Tick] the nominal time of its tick.
//   - At most one instance at a time is the leader of an Elector.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A Locker has no goroutine. [Elector.Run] runs on
// the goroutine of its caller.
//
// # Failure
//
// A tick is skipped if the lock of the job is not granted in time: because an earlier run goes on,
// the group has no majority, or the instance that ran the job has crashed and its session has not
// yet expired (mortise.Config.SessionTTL, 10 s by default). A tick that a crashed instance has
// taken is not run again. The event gocron.AfterLockError gets the reason. If a lock is lost during
// a run, gocron does not end the job. A job that must end then uses the context of its lock.
//
// With an Elector, gocron asks no Locker. When another instance begins to lead within the time by
// which the clocks differ, a tick may run twice or not at all.
//
// # Limits
//
// A Locker serves jobs with the ticks of its schedule, or with some of them. The clocks of n
// instances may differ by 32/n ticks. Beyond that a tick may run again. A DurationJob without a
// start time begins at another moment in each instance: its runs are then at most one per period,
// but not at one phase. A job with another period than the schedule is refused with
// [ErrOtherSchedule] when its third call shows it; until then it may run outside of the schedule.
// RunNow within Options.Late of a tick is the run of that tick, or fails with [ErrSameName].
//
// The name of a job is a part of a key: give each job a name with gocron.WithName. Two jobs of one
// name are one job: the second one that asks for a tick is refused with [ErrSameName]. A key has at
// most 512 bytes. The record of a job stays in the group after the job is gone, with at most 1 KB.
// With a derived secret, a Locker needs the rights lock, read and write.
//
// # Refused alternatives
//
// A lock that is kept for some time after the run needs a limit for the difference of the clocks,
// and skips ticks if that time is too long for the schedule. Package tick is a scheduler of its
// own: it also runs a tick that a crashed instance has begun, and counts the ticks it has missed.
package mortisegocron
