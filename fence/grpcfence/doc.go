// Package grpcfence carries fencing tokens over gRPC. Client interceptors send the token of the
// context, and server interceptors compare it with the mark of the resource. For HTTP see
// [fence.Transport] and [fence.Guard].
//
// A handler runs only if the token was admitted, and gets the token from [mortise.TokenFrom]; see
// [fence.Run]. The server answers a stale token with FailedPrecondition, a malformed or duplicate
// token with InvalidArgument, and a failure of the store with Unavailable. A call without a token
// also fails with FailedPrecondition, unless Guard.Optional is set. A retry can help only after
// Unavailable.
//
// Everything is safe for concurrent use if the given functions are. A [Client] or [Guard] must not
// change after its interceptors were made.
//
// The token of a stream is compared once, when the stream is opened. If the store is a
// [fence.Section], a newer holder cancels the context of the handler and waits until the handler
// returns. For a stream that never ends, use a store that is not a Section, and fence each write in
// the handler. The name of the resource comes from the message of a unary call, or from the
// metadata or the method of a stream.
//
// Reading the token by reflection from a field of the messages was rejected: the name of a field
// would then decide whether a write is guarded.
package grpcfence
