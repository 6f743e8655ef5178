// Package httplock is a middleware of net/http that handles one request at a time for each key,
// among all instances of a service:
//
//	locks := httplock.Middleware{Node: node, Request: func(r *http.Request) (mortise.Request, bool) {
//		return mortise.Request{Key: "orders/" + r.PathValue("id")}, r.Method != http.MethodGet
//	}}
//	mux.Handle("/orders/{id}", locks.Wrap(orders))
//
// The handler's context is that of the lock: it ends when the lock is lost, and carries the fencing
// token. Requests to other services get the token in the header Mortise-Token if their client has a
// fence.Transport, and a service that has a fence.Guard refuses lower tokens.
//
// # Guarantees
//
//   - At most one handler runs at a time for a key, if all requests for it are exclusive. Requests
//     are handled in the order in which the group received them.
//   - If the lock was lost, or the node begins to leave, and the handler then returns and has
//     written nothing, the answer is 503. So a handler that has done its work writes a status.
//   - The lock is released before the last bytes of a small answer are sent. So the next request of
//     the same client does not find it held.
//
// # Concurrency
//
// A Middleware is safe for concurrent use if its functions are. It uses a goroutine while a request
// waits, and one for the context of the lock.
//
// # Failure
//
// A handler that ignores the end of its context may run beside the next one. The token protects
// from that: let the resource compare it. After a crash of the instance the lock stays taken until
// its session has expired (mortise.Config.SessionTTL, 10 s by default), and other requests wait.
//
// # Limits
//
// A handler that calls another service under the same key waits for itself until a limit ends the
// wait: the lock is known by its context, which ends at the border of the process. Shut the server
// down before Node.Leave, which ends the contexts of all locks.
package httplock
