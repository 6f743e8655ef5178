// Package mortiseserver is the place of packages for the servers of a service with several
// instances. Two handle one request at a time for each key, and one sends requests to the leader:
//
//	httplock      a middleware of net/http
//	grpclock      interceptors of gRPC, for unary calls and streams
//	httpleader    a middleware of net/http: ToLeader
//
// With packages fence and fence/grpcfence, the token of the lock travels with the calls of the
// handler to other services, and a service that is called refuses lower tokens.
package mortiseserver
