// Package outside passes the environment of a node through a context: its network, its clocks, its
// files. Package mortisetest stores a World in the context, and mortise.Start reads it. So tests
// run whole nodes with a network in memory and their own clocks, without exported names in package
// mortise.
//
// Guarantees: a context has the World of the nearest call of In among its ancestors, or else the
// zero World. Concurrency: a World is copied; its functions must be safe for concurrent use.
// Failure: none. Limits: only packages of this module can import it. Refused alternatives: a field
// of Config, which users could set in production; a package variable, which parallel tests would
// share.
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

// World is the environment of one node. If a field is zero, the node uses the real environment of
// the process instead.
type World struct {
	Listen  func(address string) (net.Listener, error)
	Dial    func(ctx context.Context, address string) (net.Conn, error)
	Resolve func(ctx context.Context, host string) ([]string, error) // returns a host's addresses
	// The process runs in a pod; the environment of the process can say so, too.
	Kubernetes bool
	Clock      clock.Clock
	Wall       func() time.Time
	Random     func([]byte)
	Files      storage.FS
	// Site replaces that of the directory, whose lock file is a real one (see storage.Dir.Site).
	Site string
	// Wraps the records through which package cluster uses the directory.
	Records func(cluster.Records) cluster.Records
	// Limits of a group that this node founds. They must be equal on all founders.
	Limits lockfsm.Limits
	// Rules is the newest version of the lock rules that the node claims to know.
	Rules uint32
	// Build is the time of the commit of the node's program, in Unix seconds. It says which of two
	// builds is newer.
	Build int64
	// Fingerprints are those of the lock rules, from version 1 on. Nil means those of this build.
	Fingerprints []uint64
	// Alter changes the entries of the log before the replica of this node alone applies them.
	Alter func(batch []byte) []byte

	// Called with the internals of the node before Start returns.
	Inside func(Inside)
}

type worldKey struct{}

// The function In returns a child of parent that carries w.
func In(parent context.Context, w World) context.Context {
	return context.WithValue(parent, worldKey{}, w)
}

// The function From returns the World that ctx carries, or the zero World.
func From(ctx context.Context) World {
	w, _ := ctx.Value(worldKey{}).(World)
	return w
}
