// Package queues has the code for locks inside of job queues, which docs/PLUGS.md describes. Each
// file is for one queue:
//
//	asynq        tasks of one order one at a time; one scheduler in the fleet
//	river        jobs of one customer one at a time
//	watermill    messages of one order one at a time; one consumer in the fleet
//	temporal     an activity under a lock
//	hatchet      one lock for several tasks
//
// The tests run asynq with a Redis in memory, watermill with its channels and temporal with its
// test environment. The worker of river is called directly, since river needs PostgreSQL. For
// hatchet, the function has the type that its documentation demands, without its module.
//
// A test of internal/lab/policy compares this code with the page, which shows a part of it and
// links to each file.
package queues
