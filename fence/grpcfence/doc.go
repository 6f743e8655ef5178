// Package grpcfence carries fencing tokens over gRPC: interceptors for clients, which send the
// token of the context along, and for servers, which compare it with the mark of the resource. It
// does over gRPC what [fence.Transport] and [fence.Guard] do over HTTP, and is a package of its own
// so that who does not speak gRPC does not build it.
//
// Guarantees: those of [fence.Run]; a handler that runs has been admitted, and finds the token by
// [fence.FromContext]. A stale token is answered with FailedPrecondition, a malformed one, or two,
// with InvalidArgument, an absent one with FailedPrecondition as well unless Guard.Optional is set
// (the texts differ), and a store that cannot be asked with Unavailable. Retrying does not help
// against the first three.
//
// Concurrency: everything is safe for concurrent use if the functions that are given are. A
// [Client] and a [Guard] are not changed after their interceptors were made.
//
// Failure: nothing here keeps state. A call is refused or handed on; the error of a handler is
// handed on as it is.
//
// Limits: a stream is admitted once, when it is opened, and stays in its [fence.Section] until its
// handler returns: a newer holder ends its context, and waits for it. A stream that never ends
// belongs behind a store that is no Section, and fences each of its writes itself. Of a request,
// the resource has to be known when the call begins: from its message with unary calls, from its
// metadata or method with streams.
//
// Refused alternative: reading the token from a field of the messages by reflection. It would spare
// the metadata, and make the name of a field in somebody's protocol decide whether a write is
// guarded.
package grpcfence
