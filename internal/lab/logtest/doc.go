// Package logtest holds the conformance suite for implementations of raftlog.Store.
//
// [TestStore] checks everything that a log requires of a store. After each step it reads the
// contents back, from the open store and again after reopening the store. Each case names the
// failure that it prevents.
//
// Guarantees: a store that passes keeps the data that a log needs if it is saved in the order in
// which raft produces it. The store's own tests must show that Save is atomic and durable in a
// crash. Concurrency: the suite calls a store from one goroutine at a time. Failure: a failing case
// reports the expected result and the reason for it. Limits: random sequences are short. A store
// with files needs its own tests for damaged files. Refused alternative: a table of calls and
// expected files, which would fix one file layout for every store.
package logtest
