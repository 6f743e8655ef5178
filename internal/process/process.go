// Package process tests mortise with real processes: killed with SIGKILL, stopped with SIGSTOP, all
// restarted at once. Only its tests matter; the test binary starts itself as the instances and
// speaks JSON lines with them over standard input and output.
//
// Guarantees: none at run time. Concurrency: each child is driven by one test. Failure: a child
// that does not answer within a minute fails its test. Limits: signals that only POSIX systems
// have; elsewhere those tests are not built. Refused alternative: goroutines in one process, which
// cannot be killed, stopped, or take their memory with them; what they can show is tested in the
// root package.
package process
