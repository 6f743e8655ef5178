// Package barrier lets the instances of a service wait for each other: a count-down latch, a double
// barrier and a cyclic barrier. Each has a name, and the participants have names:
//
//	double, err := barrier.NewDouble(node, "batch/42", 3)
//	...
//	presence, err := double.Enter(ctx, "orders-0") // until three participants have entered
//	if err != nil { return err }
//	work(presence.Context(ctx))
//	return presence.Leave(ctx) // until all three have left
//
// [Latch]: n participants count down once, and any number of callers wait until the count is zero.
// [Double]: n participants enter together and leave together. [Cyclic]: n participants wait for
// each other, again and again.
//
// The name is a key of the node. Its data is the state of the latch or barrier. A participant of a
// barrier also holds a shared lock of the key while it waits or is inside, so the group notices its
// crash. No call polls: a caller that waits watches the key.
//
// # Guarantees
//
//   - A participant counts once in a latch, even if CountDown is repeated after an error. A count
//     stays when its participant or a waiter ends.
//   - Enter returns for a participant only if n participants had entered at one moment. Leave
//     returns only if each of them has left, or its session has ended.
//   - Await returns nil only if all n participants waited at one moment, and then for all of them
//     that do not crash. If one stops waiting, the generation breaks, and every other participant
//     gets ErrBroken: immediately, or at its next Await.
//   - A participant whose call has failed is not counted later, with one exception: the error says
//     that the outcome is unknown, because the group did not answer for 1 s.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Different participants may use one Latch or
// Double at the same time. A Cyclic belongs to one participant, and refuses a second concurrent
// Await. Only contexts start goroutines; those of Enter and Await end with the call, except that
// the context of a Presence ends with the Presence.
//
// # Cancellation
//
// When the context of a call ends, or the node begins to leave, Enter withdraws and Await breaks
// its generation before they return, which takes at most 1 s. CountDown, Wait and Leave return at
// once. Without a majority, calls wait until their context ends.
//
// # Failure
//
// A crash is noticed when the session of the participant ends, within SessionTTL and one failover.
// Until then it still counts as waiting or inside. A process that is started again under the same
// name takes the place of its former session at once: it counts once in a Double, and breaks the
// generation in which the former session waited in a Cyclic. If two live calls use one name, the
// earlier fails with ErrReplaced. A participant that crashes while it does not wait breaks no
// generation: the others wait until it comes back, or until their contexts end. A process that is
// started again does not get ErrBroken for an earlier generation.
//
// A participant that is cut off loses its session. Its Presence.Context ends before the others can
// return from Leave. Work that must not overlap with later work needs a lock with a token.
//
// If the group is founded anew, all data and all holds are gone. Wait returns ErrForgotten if it
// had seen a count, and otherwise waits for the counts of the new group. A participant that depends
// on a latch should therefore call CountDown again when its Wait returns ErrForgotten. Presences
// are lost, and Await returns ErrBroken.
//
// # Limits
//
// A name is a key, 1 to 512 bytes. No other code may lock this key or change its data. There are 1
// to 128 participants. A participant has a name of 1 to 128 bytes; in a latch of n, the names also
// have at most 3,900/n-1 bytes each, as JSON. A Latch and a Cyclic keep one of the 16,384 data of
// the group until Remove; a Double keeps none when all have left. Each waiting call uses one of the
// leader's 4,096 watches, and a watch first visits all keys of the group. Each arrival wakes all
// waiters, and each of them sends one query.
//
// # Refused alternatives
//
// A latch could be a counter. But after an error, a caller could not know whether to count again. A
// broken Cyclic could stay broken until a Reset, as in Java. But two participants that both call
// Reset break the generation after it, in which the first may already wait.
package barrier
