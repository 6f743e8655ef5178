// Package history records lock operations, and judges whether such a history is one that mortise
// may produce.
//
// # The format, version 1
//
// A history is text: one JSON object a line, in any number of files, which may be concatenated. A
// line has the member "k", its kind, and "at", its time: nanoseconds on a clock that all lines
// share as far as the machines' clocks agree. Every recorder begins with a header, which names its
// node and the version; the lines up to the next header are that node's. Unknown members are
// ignored, unknown kinds are refused. Numbers that could exceed 2^53 are strings.
//
//	{"k":"history","at":…,"v":1,"node":"node-0"}              the header
//	{"k":"call","at":…,"op":7,"key":"a","try":true}           a caller asks for a key;
//	                                                          op is its number on this node
//	{"k":"return","at":…,"op":7,"out":"granted","token":"812"}
//	                                                          … and holds it
//	{"k":"return","at":…,"op":7,"out":"held","token":"808"}   … or was told that token 808
//	                                                          holds it (try only)
//	{"k":"return","at":…,"op":7,"out":"failed","err":"context"}
//	                                                          … or holds nothing: context, closed,
//	                                                          not ready, queue full, deadlock, …
//	{"k":"unlock","at":…,"op":7}                              the holder of call 7 releases
//	{"k":"unlocked","at":…,"op":7}                            … and the release is confirmed;
//	                                                          with "err" it is not
//	{"k":"lost","at":…,"op":7,"until":…}                      the lock of call 7 was lost; the caller
//	                                                          believed in it until then
//
// Voters record what the replicated state did, in the order of group, index and, within one entry,
// seq.
//
//	{"k":"begin","at":…,"group":"1f","index":1,"rev":"800"}   this voter's account begins here
//	{"k":"grant","at":…,"group":"1f","index":9,"seq":1,"rev":"812","key":"a","token":"812",
//	 "place":"811","session":"802","number":3}
//	{"k":"end","at":…,"group":"1f","index":12,"seq":1,"rev":"813","key":"a","token":"812",…,
//	 "how":"release"}
//	{"k":"mark","at":…,"group":"1f","index":20,"rev":"840"}   this voter's account reaches this far
//	{"k":"dropped","at":…,"count":17}                         the recorder has not written 17 lines
//
// That is the mutex. Other requests have three more members in their call, grant and end; one grant
// has all keys of its request:
//
//	"keys":["b","c"]         further keys, ascending, above key
//	"permits":1              key is shared: a reader
//	"permits":2,"of":5       two permits of five: a semaphore
//
// A try that failed because of a waiter for several keys, which holds none yet, returns "held"
// without a token. Owners and reentrant locks are not recorded.
//
// A grant without seq belongs to a begin: it was there before the account. how is what ended a
// granted lock: release, cancel, expire, close, attach, or force. Force means that another caller
// ended it; the holder can believe in it until it is told.
//
// # Guarantees
//
// The [Recorder] never makes its caller wait for the disk. It counts what it cannot write: a
// history with a hole is judged [ErrUnknown], never right.
//
// [Judge] replays the history by the order of the log and compares it with real time. It trusts
// only the voters' account of the order. Package judge, a separate module, has a judge that does
// not trust that either.
//
// # Concurrency
//
// A Recorder is safe for concurrent use. A [Trail] belongs to the goroutine that applies the log.
// Judge only reads.
//
// # Failure
//
// A [*Violation] names the rule and the events that show it. Close returns errors of the writer.
//
// # Limits
//
// The whole history is judged in memory, some hundred bytes an event. If clocks differ by more than
// Options.Uncertainty, a right history can look wrong.
//
// # Refused alternative
//
// Guessing expiries: a checker that lets any owner vanish at any time needs no account of the
// voters. But it finds no second owner, since the first may always have vanished.
package history
