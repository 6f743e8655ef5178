// Package whole runs complete nodes under callers and faults that a seed chooses, and judges what
// the callers saw. Nothing of the nodes is replaced: all goroutines, links, gRPC, gossip and the
// log on disk are those of production. The network (internal/memnet), the time (testing/synctest)
// and the files of the log (World.Files) are in memory.
//
// # What it judges
//
// Package history judges the record of all nodes. Beside it, a run checks the locks of all callers
// as it goes, guests included; the data that is written under locks, and what was acknowledged; how
// long each call takes; and that Close leaves no goroutine. In a calm part of the run, calls begin
// together beside at most one fault, and have a bound of milliseconds for that fault. So a lost
// message whose loss is repaired only by a timeout of another purpose fails the run. A mutex must
// not be held across a wait, because fake time stands still while a goroutine waits for a mutex.
//
// # Seeds
//
// TestSeeds runs in any Go, but there a seed decides only what callers and faults do, not the order
// of goroutines. scripts/whole builds the same test with the changed runtime of package native.
// There a run is a function of its seed, byte for byte, and queues refuse work at times.
//
// Concurrency: one run at a time in a process. Failure: a run that fails prints its last lines and
// the command that repeats it. Limits: those of packages memnet and native; a directory's meta.db
// (bbolt) is a real file. Refused alternative: package internal/lab/sim runs the same cores a
// thousand times faster, but has shells of its own, so it cannot see what the shells do wrong.
package whole
