// Package trace tells observers what becomes of the locks of a node. There are two observers:
// functions of the user, called hooks, and a recorder that writes a history for a judge. Both are
// behind one value, a [Call] for each lock that is asked for, so that the code of a lock says once
// when it asks, when it is answered and when it lets go.
//
// A nil [Tracer] is a node without observers. It returns nil Calls, and the methods of both do
// nothing then. So no branch of a lock depends on whether there are observers, and nothing is
// allocated.
//
// All is safe for concurrent use. Hooks that belong to a caller are called on its goroutine. All
// others are called one at a time, in order, on a goroutine that is there while there is something
// to tell. If [MostWaiting] calls wait for a slow hook, more are dropped and counted. A hook that
// panics is logged and called again next time; for one that hangs Close waits [CloseLimit].
package trace
