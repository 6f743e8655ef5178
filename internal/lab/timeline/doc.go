// Package timeline shows a run of several processes as one HTML page without scripts and without
// references to other files: the faults that the failure needs, the keys with their holders and
// waiters, the processes with what happened to them and which messages were lost, and the moment at
// which the judge objected. Simulations of cores and of whole nodes use it.
//
// A program fills a [Page] and calls [Page.Write]. [Holds] makes the lanes of the keys from a
// recorded history. All times are those of one clock, such as the global time of a simulation.
//
// # Limits
//
// The page shows at most [MaxItems] bars and marks of its window, the last ones. It has all
// faults, and says how many items it leaves out.
package timeline
