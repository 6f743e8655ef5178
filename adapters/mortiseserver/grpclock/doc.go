// Package grpclock has server interceptors of gRPC that handle one call at a time for each key,
// among all instances of a service:
//
//	locks := grpclock.Interceptor{Node: node,
//		Request: func(_ context.Context, method string, req any) (mortise.Request, bool) {
//			put, is := req.(*orders.PutRequest)
//			return mortise.Request{Key: "orders/" + put.GetId()}, is
//		}}
//	server := grpc.NewServer(grpc.UnaryInterceptor(locks.Unary()))
//
// The handler's context is that of the lock: it ends when the lock is lost, and carries the fencing
// token. Calls to other services get the token in their metadata if their connection has the
// interceptors of fence/grpcfence, whose Guard refuses lower tokens at the resource.
//
// # Guarantees
//
// At most one handler runs at a time for a key, if all requests for it are exclusive. Calls are
// handled in the order in which the group received them. The lock of a stream is held until its
// handler returns. The lock of a unary call is released before the reply is sent.
//
// # Concurrency
//
// An Interceptor is safe for concurrent use if its functions are. It uses a goroutine while a call
// waits, and one for the context of the lock.
//
// # Failure
//
// A handler that ignores the end of its context may run beside the next one. The token protects
// from that: let the resource compare it. After a crash of the instance the lock stays taken until
// its session has expired (mortise.Config.SessionTTL, 10 s by default), and other calls wait.
//
// # Limits
//
// A handler that calls another service under the same key waits for itself until a limit ends the
// wait. Stop the server before Node.Leave, which ends the contexts of all locks.
package grpclock
