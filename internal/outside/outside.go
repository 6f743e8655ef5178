// Package outside carries through a context what a node takes from the world outside its process: its network and its clock. Package
// mortisetest puts it in, and mortise.Start looks for it: so whole nodes stand on a network in memory and on clocks of the test's own, and
// the root exports nothing for it and has no state that two tests could share.
//
// Guarantees: a context that nobody has put a World into has none, and its children have that of the nearest In. Concurrency: a World is
// copied; its functions must be safe for concurrent use. Failure: none. Limits: only packages of this module can reach it.
//
// Refused alternatives: a field of Config, which every user would see and some would set in production; a package variable, which makes tests
// that run side by side disturb each other.
package outside

import (
	"context"
	"net"

	"github.com/mortise-lock/mortise/internal/clock"
)

// World is the network and the clock of one node. A field that is nil stands for the machine's own.
type World struct {
	Listen  func(address string) (net.Listener, error)
	Dial    func(ctx context.Context, address string) (net.Conn, error)
	Resolve func(ctx context.Context, host string) ([]string, error) // a host's addresses
	Clock   clock.Clock                                              // the boot-time clock
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
