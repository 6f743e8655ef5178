// Package lead runs the leader's side of keeping the voters of a group right. It decides when to
// look at them, which step to hand to the log and when to try it again, which instances to ask, and
// what to answer an instance that leaves. The cluster's owner and the simulation run the same code.
//
//	           Due ──▶ Look(facts) ──▶ Orders: carry a step, ask for a replica, probe a life
//	Answered, Probed, PeerLost ──▶ another look
//	                                VoterStatus: may this replica stop?
//
// Package voters decides which step is right. This package keeps the state of one lead.
//
// # Guarantees
//
//   - While nothing changes, a step is handed to the log once, and again after a second.
//   - While this instance leads, two looks are at least 50 ms and at most a second apart.
//   - An answer to a question of another lead changes nothing.
//
// # Concurrency
//
// Nothing here is safe for concurrent use. Nothing reads a clock or blocks: times are arguments.
//
// # Failure
//
// If a question gets no answer, the step stays as it was and the next look asks again.
package lead
