// Package process tests mortise with real processes, which are killed with SIGKILL, stopped with
// SIGSTOP, or all restarted simultaneously. It contains only tests. The test binary starts copies
// of itself as instances, and exchanges JSON lines with them over standard input and output.
//
// Guarantees: none at run time. Concurrency: each child is driven by one test. Failure: a child
// that does not answer within a minute fails its test. Limits: the tests need POSIX signals.
// Refused alternative: goroutines, because they cannot be killed or stopped.
package process
