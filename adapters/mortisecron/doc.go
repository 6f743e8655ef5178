// Package mortisecron lets the cron of several instances run each job once at each scheduled time.
// It is a cron.JobWrapper for github.com/robfig/cron/v3, with locks of mortise:
//
//	jobs := mortisecron.New(node, mortisecron.Options{})
//	schedule, err := cron.ParseStandard("*/5 * * * *")
//	...
//	c.Schedule(schedule, cron.NewChain(jobs.Once("reports", schedule)).Then(reports))
//
// # How a tick is run once
//
// cron calls the job at each tick in each instance, and does not pass the time of the tick. A lock
// that is held only while the job runs is not enough: if the job ends before another instance asks,
// it runs again there. So the wrapper knows the schedule. It takes the tick that is nearest to its
// clock, and records in the group that this tick is taken. Only the instance that has made the
// record then waits for the lock of the job and runs it.
//
// # Guarantees
//
//   - A tick of a job is run at most once in the group, even if the instance crashes during the
//     run, and even if an instance asks late. The record has the last 32 ticks of a job.
//   - Two runs of a job do not overlap: the lock of the job is held during the run, and released
//     when the job returns or panics.
//   - A [Func] gets a context that ends when the lock is lost, with the fencing token, and the
//     nominal time of the tick, which is equal on every instance.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. A run uses the goroutine that cron has started
// for it.
//
// # Failure
//
// A tick is skipped if the lock of the job is not granted within Options.Late: because an earlier
// run goes on, the group has no majority, or the instance that ran the job has crashed and its
// session has not yet expired (mortise.Config.SessionTTL, 10 s by default). A tick that a crashed
// instance has taken is not run again. Options.Failed gets the reason. A job that is no Func does
// not learn that its lock is lost.
//
// # Limits
//
// The clocks of n instances may differ by 32/n ticks. Beyond that a tick may run again. A schedule
// must have the same ticks in every instance: the same time zone, and no cron.Every or "@every",
// whose ticks begin when the instance starts. Such a schedule is refused with [ErrEvery]; use
// tick.Every instead. A call by hand of the wrapped job is for the nearest tick, and does nothing
// if that is taken; cron.Entry.Job is the job without its wrappers.
//
// The name of a job is a part of a key: a key has at most 512 bytes. Two jobs of one name are one
// job: the second one that asks for a tick is refused with [ErrSameName]. The record of a job stays
// in the group after the job is gone, with at most 1 KB. With a derived secret, the rights lock,
// read and write are needed.
//
// # Refused alternative
//
// A wrapper of the schedule could note the time of each tick. But cron asks the schedule for the
// next tick while the job begins, so the job could see either.
package mortisecron
