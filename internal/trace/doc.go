// Package trace reports the events of a node's locks to observers. There are two: functions of the
// user, called hooks, and a recorder that writes a history for a judge. Both are behind one [Call]
// for each requested lock, so the code of a lock reports each step once: the request, the answer
// and the release.
//
// A nil [Tracer] is a node without observers. It returns nil Calls, and the methods of both then do
// nothing. So no branch of a lock depends on whether there are observers, and nothing is allocated.
//
// Everything is safe for concurrent use. Hooks that belong to a caller run on its goroutine. All
// others run one at a time, in order, on a goroutine that exists only while calls wait. If
// [MostWaiting] calls wait for a slow hook, further ones are dropped and counted. A panic of a hook
// is logged, and the hook is called again next time. Close waits up to [CloseLimit] for a hook that
// hangs.
package trace
