// Package logtest holds the conformance suite for implementations of raftlog.Store.
//
// [TestStore] exercises everything that a log requires of a store. After each step it reads the
// contents back, from the open store and again after reopening it. Each case states what would
// break without it.
//
// Guarantees: a store that passes keeps what a log needs, in the sequences that raft produces.
// Crashes are not covered: that Save is atomic and durable when it returns can only be shown by
// ending the process or the machine. The store's own tests must do that.
//
// Concurrency: the suite calls a store from one goroutine at a time.
//
// Failure: a failing case reports what was wanted, and why.
//
// Limits: random sequences are short; a store with files needs its own tests for the ends of files.
//
// Refused alternative: a table of calls and expected files. It would fix one file layout for every
// store.
package logtest
