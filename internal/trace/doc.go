// Package trace reports the events of a node's locks to observers. The observers are the user's
// functions, called hooks, and a recorder. The recorder writes a history that can be judged
// afterwards. Each requested lock has one [Call].
//
// A nil [Tracer] means that the node has no observers. It returns nil Calls. The methods of a nil
// Tracer and of a nil Call do nothing and allocate nothing.
//
// Everything is safe for concurrent use. A hook of a call runs on the caller's goroutine. All other
// hooks run one at a time, in order, on a goroutine that exists only while calls of hooks are
// queued. If [MostWaiting] calls are queued because a hook is slow, further calls are dropped and
// counted. If a hook panics, the panic is logged, and the hook is still called for later events.
// Close waits up to [CloseLimit] for a hook that hangs.
package trace
