// Package httpleader is a middleware of net/http that sends a request to the instance that leads an
// election, or that holds a given key. So a load balancer may give the request to any instance:
//
//	toLeader := httpleader.ToLeader{Node: node, Key: func(*http.Request) string { return "billing" }}
//	mux.Handle("POST /bills", toLeader.Wrap(bills))
//	...
//	err := election.New(node, "billing", election.Options{}).Run(ctx, "10.0.0.7:8080", lead)
//
// The candidate gives the address of its own server as the value: a host and port, or a URL. For a
// key that is locked without an election, this is mortise.Request.Value.
//
// # Guarantees
//
//   - The handler runs only on an instance that held the key at some moment after it had received
//     the request. mortise.TokenFrom finds the token of that hold in the handler's context.
//   - A request is forwarded at most once. If the instance that receives it does not hold the key,
//     it answers 503.
//   - A forwarded request has the method, path, query, host, body and headers of the original,
//     except for hop-by-hop headers. Body and answer are streamed. If the client goes, the context
//     of the handler ends.
//   - A request that gets 503 was not handled, so the client may send it again. One that gets 502
//     may have been handled. ToLeader sends each request once. As for every client,
//     http.Transport may repeat a GET, HEAD, OPTIONS or TRACE whose connection broke.
//
// # Concurrency
//
// A ToLeader is safe for concurrent use if its functions are. The handler of Wrap uses the
// goroutine of the request, and those of the Transport.
//
// # Failure
//
// A crashed leader holds the key until its session has expired (mortise.Config.SessionTTL, 10 s by
// default). Until then requests are answered with 503. The leadership may end while the handler
// runs, and the context of the handler does not end then: give the token to what the handler
// changes, or use election.Leadership.Context.
//
// # Limits
//
// Each request costs one read that a majority confirms (mortise.Node.Peek). A read of the key must
// be allowed to this instance. If several requests hold the key, the first one counts. All
// instances must be able to reach the address of the leader. The leader sees the address of the
// other instance in http.Request.RemoteAddr, and that of the client at the end of X-Forwarded-For,
// which is only as trustworthy as the network between the instances. A client can set the header
// that marks forwarded requests; its request is then not forwarded.
//
// # Refused alternative
//
// The instances could observe the leader and remember it (election.Election.Observe). That saves
// the read, but a request could reach a handler on a former leader, with a token that nothing has
// refused yet.
package httpleader
