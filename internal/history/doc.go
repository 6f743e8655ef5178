// Package history records lock operations, and judges whether mortise may produce such a history.
//
// # The format, version 1
//
// A history is text with one JSON object on each line, in one or more files, which may be
// concatenated. In each line the member "k" is the kind of the event, and "at" is its time in
// nanoseconds. Every recorder begins with a header, which names its node and the version of the
// format. The lines up to the next header belong to that node. Unknown members are ignored, and
// unknown kinds are an error. Numbers that could exceed 2^53 are strings.
//
//	{"k":"history","at":…,"v":1,"node":"node-0"}              the header
//	{"k":"call","at":…,"op":7,"key":"a","try":true}           a call for a key;
//	                                                          op is its number on this node
//	{"k":"return","at":…,"op":7,"out":"granted","token":"812"}
//	                                                          the call holds the key
//	{"k":"return","at":…,"op":7,"out":"held","token":"808"}   token 808 holds the key (try only)
//	{"k":"return","at":…,"op":7,"out":"failed","err":"context"}
//	                                                          the call failed: context, closed,
//	                                                          not ready, queue full, deadlock, …
//	{"k":"unlock","at":…,"op":7}                              the holder of call 7 releases
//	{"k":"unlocked","at":…,"op":7}                            the release is confirmed;
//	                                                          with "err" it is not
//	{"k":"downgrade","at":…,"op":7}                           the holder of call 7 acts as a reader
//	                                                          from now on
//	{"k":"enter","at":…,"op":7,"key":"a","permits":1}         a request enters the lock of call 7
//	                                                          again, and gets another handle of it
//	{"k":"lost","at":…,"op":7,"until":…}                      the lock of call 7 was lost; the caller
//	                                                          believed in it until then
//
// Voters record the changes of the replicated state, in the order of index and, within one log
// entry, seq.
//
//	{"k":"begin","at":…,"group":"1f","index":1,"rev":"800"}   this voter's account begins here
//	{"k":"grant","at":…,"group":"1f","index":9,"seq":1,"rev":"812","key":"a","token":"812",
//	 "place":"811","session":"802","number":3}
//	{"k":"end","at":…,"group":"1f","index":12,"seq":1,"rev":"813","key":"a","token":"812",…,
//	 "how":"release"}
//	{"k":"shared","at":…,"group":"1f","index":11,"seq":1,"rev":"813","key":"a","token":"812",…,
//	 "permits":1}                                             the hold now has these permits or
//	                                                          modes, and its end line has them, too
//	{"k":"mark","at":…,"group":"1f","index":20,"rev":"840"}   this voter's account reaches this far
//	{"k":"dropped","at":…,"count":17}                         the recorder has not written 17 lines
//
// Requests other than for a mutex have more members in the lines call, enter, grant and end. One
// grant line has all keys of its request:
//
//	"keys":["b","c"]         further keys, ascending, above key
//	"permits":1              key is shared: a reader
//	"permits":2,"of":5       two permits of five: a semaphore
//	"modes":"220"            the mode of each key, as in lockfsm.Mode
//	"upgrades":"812"         an upgrade of the upgradable hold with that token
//
// A try that fails because of a waiter for several keys returns "held" without a token. The owner
// that a request names, and the end of a handle before that of its lock, are not recorded.
//
// The grant of a stay has the member "last", which is the last token that the grant has reserved
// for callers. The first of these tokens is the one after "token", and no caller gets "token"
// itself:
//
//	"token":"812","last":"1836"
//
// If the group cannot reserve tokens for a sticky request, "last" is equal to "token". One caller
// then gets "token" itself.
//
// A call that is granted a lock out of a stay, or that is told of it, returns one of these tokens.
// Such a grant is called a pass. The caller's lines are the same as for any lock, but the voters
// record neither the pass nor its end. A reader that does not know the member "last" ignores it, so
// the version of the format is still 1. Its verdict on a history with stays is wrong, because it
// finds no grant with the tokens of the passes.
//
// A grant without seq belongs to the begin line before it: the lock was already held when the
// account began. The member "how" names what ended a granted lock: release, cancel, expire, close,
// attach or force. Force means that another caller ended the hold. The holder may believe that it
// holds the lock until it is notified.
//
// # Guarantees
//
// The [Recorder] never makes its caller wait for the disk. It drops and counts the events for which
// it has no room. [Judge] returns [ErrUnknown] for a history with dropped events, never nil.
//
// Judge replays the history in the order of the log and compares it with real time. It trusts the
// voters only for the order of the log entries. Package judge, a separate module, does not trust
// this order. The voters record no passes, so Judge replays them in the order of their tokens.
//
// # Concurrency
//
// A Recorder is safe for concurrent use. A [Trail] must be used only on the goroutine that applies
// the log. Judge does not change its events.
//
// # Failure
//
// A [*Violation] names the broken rule and the events that show it. [Recorder.Close] returns the
// errors of the writer.
//
// # Limits
//
// Judge needs the whole history in memory, some hundred bytes for each event. If clocks differ by
// more than Options.Uncertainty, Judge may report a violation in a correct history.
//
// # Refused alternative
//
// A checker could allow any lock to expire at any time. It would then need no events from the
// voters. But it would never find two owners of a key, because it could always assume that the
// first lock has expired.
package history
