// Package historytest generates histories: right ones of any length, and wrong ones in which one
// rule is broken.
//
// A small simulated world on one goroutine generates a right history: callers that lock, try,
// cancel, hold too long and crash; a log with delays; voters that apply it at their own pace, one
// of them from a snapshot. The rules are those of the real state machine, and the voters' account
// comes from the real [history.Trail]. So the callers and the log agree.
//
// The same [Options] give the same history. Calls share no state, and may run concurrently. Limits:
// one group, one call at a time for each caller. Recorded histories of real nodes would never be
// the same twice, and would contain the very bugs that the judges should find.
package historytest
