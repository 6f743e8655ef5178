// Package grpcfence carries fencing tokens over gRPC. Interceptors of a client send the token of
// the context, and interceptors of a server compare it with the mark of the resource. It is the
// counterpart of [fence.Transport] and [fence.Guard], separate so that programs without gRPC do not
// build it.
//
// A handler runs only if the token was admitted, and finds it by [fence.FromContext]; see
// [fence.Run]. The server answers a stale token with FailedPrecondition, a malformed one, or two,
// with InvalidArgument, and a failed store with Unavailable. An absent token is answered with
// FailedPrecondition and another text, unless Guard.Optional is set. Only after Unavailable can a
// retry help.
//
// Everything is safe for concurrent use if the given functions are. A [Client] and a [Guard] must
// not be changed after their interceptors were made. The package keeps no state, and returns the
// error of a handler unchanged.
//
// A stream is admitted once, when it is opened, and stays in its [fence.Section] until its handler
// returns: a newer holder ends its context and waits for it. For a stream that never ends, use a
// store that is not a Section and fence each write in the handler. The resource must be known when
// the call begins: from the message of a unary call, or from the metadata or the method of a
// stream.
//
// Reading the token from a field of the messages by reflection was rejected: a field name in
// another protocol would decide whether a write is guarded.
package grpcfence
