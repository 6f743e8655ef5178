// Package historytest makes histories: right ones, of any length, and wrong ones, in which one rule
// is broken.
//
// A right history is made by a small world of its own on one goroutine: callers that lock, try,
// cancel, hold too long and crash; a log that takes its time; voters that apply it in theirs, one
// of them from a snapshot. The rules come from the real state machine, the account of the voters
// from the real [history.Trail], and the times from the world, so what a caller sees and what the
// log says agree because they come from the same run.
//
// Guarantees: the same [Options] give the same history. Concurrency: none is used, and every call
// stands for itself. Failure: none. Limits: one group, one call at a time for each caller. Refused
// alternative: recorded histories of real nodes, which are never the same again, and which come
// with the very bugs that the judges should find.
package historytest
