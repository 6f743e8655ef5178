// Package historytest generates correct histories of any length, and wrong histories in which one
// rule is broken.
//
// A simulation on one goroutine generates a correct history. Its callers lock, try, cancel, hold
// too long and crash. Each voter applies the log at a different speed, and one voter begins with a
// snapshot. The real state machine decides, and the real [history.Trail] writes the voters'
// account.
//
// The same [Options] give the same history. Calls share no state, and may run concurrently. A
// history has one group, and each caller makes one call at a time.
package historytest
