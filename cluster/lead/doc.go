// Package lead is the leader's part of keeping the voters of a group up to date. It decides when to
// evaluate the voters, which steps to pass to the log, and when to repeat a step. Package voters
// decides which step is due. This package keeps the state of one term as leader.
//
//	           Due ──▶ Look(facts) ──▶ Orders: carry a step, ask for a replica, probe a life
//	Answered, Probed, PeerLost ──▶ another look
//	                                VoterStatus: may this replica stop?
//
// # Guarantees
//
//   - While nothing changes, a step is passed to the log at most once a second.
//   - While this instance leads, two evaluations are at least 50 ms and at most a second apart.
//   - An answer to a question of another term has no effect.
//
// # Concurrency
//
// Nothing here is safe for concurrent use. No function reads a clock or blocks; times are
// arguments.
//
// # Failure
//
// If a question gets no answer, the step remains due and a later evaluation repeats the question.
package lead
