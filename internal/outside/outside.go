// Package outside carries through a context what a node takes from the world outside its process:
// its network, its clocks, its files. Package mortisetest puts it in, and mortise.Start looks for
// it: so whole nodes stand on a network in memory and on clocks of the test's own, and the root
// exports nothing for it and has no state that two tests could share.
//
// Guarantees: a context without a World put into it has none, and its children have that of the
// nearest In. Concurrency: a World is copied; its functions must be safe for concurrent use.
// Failure: none. Limits: only packages of this module can reach it.
//
// Refused alternatives: a field of Config, which every user would see and some would set in
// production; a package variable, which makes tests that run side by side disturb each other.
package outside

import (
	"context"
	"net"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// World is what one node takes from outside. The zero value of a field stands for what the machine
// has.
type World struct {
	Listen  func(address string) (net.Listener, error)
	Dial    func(ctx context.Context, address string) (net.Conn, error)
	Resolve func(ctx context.Context, host string) ([]string, error) // returns a host's addresses
	Clock   clock.Clock                                              // the boot-time clock
	Wall    func() time.Time
	Random  func([]byte)
	Files   storage.FS
	Records func(cluster.Records) cluster.Records // stands between the cluster room and the directory
	Limits  lockfsm.Limits                        // of a group that is founded here; every founder must have the same

	Inside func(Inside) // is given the inside of the node before Start returns
}

// worldKey is the key under which a context carries a World.
type worldKey struct{}

// In returns a child of parent with w in it.
func In(parent context.Context, w World) context.Context {
	return context.WithValue(parent, worldKey{}, w)
}

// From returns the World of ctx, the zero World if it has none.
func From(ctx context.Context) World {
	w, _ := ctx.Value(worldKey{}).(World)
	return w
}
