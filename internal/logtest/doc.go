// Package logtest holds the conformance suite for implementations of raftlog.Store.
//
// What it is: [TestStore] puts a store through everything that a log asks of one, and reads it back
// after each step, both from the store that is open and from the same store opened anew. Each case
// says what would break if it did not hold.
//
// Guarantees: a store that passes keeps what a log needs, in the sequences that raft produces. It
// says nothing about crashes: whether Save is durable when it returns, and one unit, can only be
// shown by ending the process or the machine. The store's own tests do that.
//
// Concurrency: the suite calls a store like a log does, from one goroutine at a time.
//
// Failure: a case that fails names what was wanted, and why.
//
// Limits: random sequences are short; a store with files should have tests of its own for what
// happens at their ends.
//
// Refused alternative: a table of calls and expected files. It would bind every store to one
// layout.
package logtest
