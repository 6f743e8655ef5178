// Package history is the recorded history of lock operations, and the judge that says whether it is
// one that mortise may have.
//
// # The format, version 1
//
// A history is text: one JSON object a line, in any number of files, one for each node or one for
// all. Files may be concatenated. A line has the member "k", what it is, and "at", when:
// nanoseconds on a clock that all lines share, as well as the machines' clocks agree. Every
// recorder begins with a header, which names its node and the version, and everything up to the
// next header is that node's. Unknown members are ignored, unknown kinds are refused. Numbers that
// could exceed 2^53 are strings.
//
//	{"k":"history","at":…,"v":1,"node":"node-0"}                            the header
//	{"k":"call","at":…,"op":7,"key":"a","try":true}                         a caller asks for a key; op is its own number on this node
//	{"k":"return","at":…,"op":7,"out":"granted","token":"812"}              … and holds it
//	{"k":"return","at":…,"op":7,"out":"held","token":"808"}                 … or was told that token 808 holds it (try only)
//	{"k":"return","at":…,"op":7,"out":"failed","err":"context"}             … or holds nothing: context, closed, not ready, queue full, deadlock, …
//	{"k":"unlock","at":…,"op":7}                                            the holder of call 7 lets go
//	{"k":"unlocked","at":…,"op":7}                                          … and the release is confirmed; with "err" it is not
//	{"k":"lost","at":…,"op":7,"until":…}                                    the lock of call 7 was lost; it was believed in until then
//
// Voters say what the replicated state did, in the order in which they apply it: group, index and,
// within one entry, seq.
//
//	{"k":"begin","at":…,"group":"1f","index":1,"rev":"800"}                 this voter's account begins with that state
//	{"k":"grant","at":…,"group":"1f","index":9,"seq":1,"rev":"812","key":"a","token":"812","place":"811","session":"802","number":3}
//	{"k":"end","at":…,"group":"1f","index":12,"seq":1,"rev":"813","key":"a","token":"812",…,"how":"release"}
//	{"k":"mark","at":…,"group":"1f","index":20,"rev":"840"}                 this voter's account has come that far
//	{"k":"dropped","at":…,"count":17}                                       the recorder could not write 17 lines
//
// That is the mutex. What a request asks for beyond it, its call, its grant and its end say in
// three more members, so that a grant is of all its keys, in one moment:
//
//	"keys":["b","c"]         further keys, ascending, above key
//	"permits":1              key is shared with others who share it: a reader
//	"permits":2,"of":5       two permits of five: a semaphore
//
// A try that was held back by somebody who waits for several keys, and so holds none, is told
// "held" without a token. An owner is not recorded, nor is what enters a lock again: it is no call
// of its own.
//
// A grant without seq belongs to a begin: it was there before the account. An end is of a lock that
// was granted, and how is what ended it: release, cancel, expire, close, attach, or force: somebody
// else has ended it, and its holder can believe in it until he is told.
//
// # Guarantees
//
// The [Recorder] never makes its caller wait for the disk. What it cannot write it counts, and a
// history with a hole is judged [ErrUnknown], never right.
//
// [Judge] replays the history by the order of the log and compares it with real time: see there for
// the rules. It trusts the voters' account of the order, and nothing else; package judge, a module
// of its own, has a second judge that does not even trust that.
//
// # Concurrency
//
// A Recorder is safe for concurrent use. A [Trail] belongs to the goroutine that applies the log.
// Judge reads only.
//
// # Failure
//
// A [*Violation] tells the rule and the few events that matter. Errors of the writer are returned
// by Close.
//
// # Limits
//
// The whole history is judged in memory, some hundred bytes an event. Clocks that disagree by more
// than what Options.Uncertainty says can make a right history look wrong.
//
// # Refused alternative
//
// Guessing expiries: a checker that lets any owner vanish at any time needs no account of the
// voters, and finds no second owner, since it can always say that the first had vanished.
package history
