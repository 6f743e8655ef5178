// Package mortiseserver is the place of two packages that handle one request at a time for each
// key, among all instances of a service:
//
//	httplock    a middleware of net/http
//	grpclock    interceptors of gRPC, for unary calls and streams
//
// With packages fence and fence/grpcfence, the token of the lock travels with the calls of the
// handler to other services, and a service that is called refuses lower tokens.
package mortiseserver
