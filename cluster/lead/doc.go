// Package lead is what a leader decides about the voters of its group: when to look at them, which
// step to hand to its log and when to try it again, which instances to ask for the sake of that,
// and what to tell one that leaves. The cluster's owner and the simulation run the same code.
//
//	          Due ──▶ Look(facts) ──▶ Orders: carry a step, ask for a replica, probe a life
//	Answered, Probed, Retired ──▶ another look
//	                                Counsel: may this replica stop?
//
// Which step is right, package voters decides; this package is its memory over one lead.
//
// # Guarantees
//
//   - A step is handed to the log once as long as nothing changes, and again after a second.
//   - Looks are 50 ms apart at the least, and a second at the most while this instance leads.
//   - An answer that belongs to another lead changes nothing.
//
// # Concurrency
//
// Nothing here is safe for concurrent use, reads a clock or waits: times are arguments.
//
// # Failure
//
// A question that is not answered leaves the step where it was: the next look asks anew.
package lead
