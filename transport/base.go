package transport

import (
	"context"
	"sync"
	"sync/atomic"
)

// base is what all parts of a port use. The table of links, the pool and their parts have pointers
// to it, and it has none to them.
type base struct {
	config   Config
	listener *listener
	notices  *notices
	counts   counters
	holds    holdings
	guard    *guard
	dials    *dials

	self    atomic.Pointer[Self]
	boot    [bootBytes]byte // random bytes of this process, to detect a copied directory
	closing chan struct{}   // closed when Close begins
	ctx     context.Context // ends when Close closes all connections
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // all goroutines except those of gRPC

	mu   sync.Mutex // guards all below, and the fields of table and pool; never held across a wait
	shut bool
	// ends with this incarnation, as do the connections that this incarnation dialed for calls
	life    context.Context
	endLife context.CancelFunc
}

type counters struct {
	framesSent, raftDropped, raftForeign, framesForeign, packetsDropped atomic.Uint64
}
