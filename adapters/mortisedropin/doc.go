// Package mortisedropin is the place of three packages with the methods of other lock libraries, so
// that trying mortise is a change of an import:
//
//	github.com/go-redsync/redsync/v4            mortisedropin/redsync
//	github.com/bsm/redislock                    mortisedropin/redislock
//	go.etcd.io/etcd/client/v3/concurrency       mortisedropin/concurrency
//
// None of them imports the other library. Their comments list what differs and what is left out.
// The module in the directory compare runs the same tests with both.
//
// # Limits
//
// A process needs a node, and all processes must move in one deployment: locks of mortise and locks
// of the other library do not exclude each other. For a while, mortisepair.Both can take both.
package mortisedropin
