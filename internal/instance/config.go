package instance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Config is mortise.Config after its checks, with its defaults and without its secrets. Fields of
// one name mean the same in both.
type Config struct {
	Name, Cluster, Zone string
	Bind, Advertise     string
	Join                []string
	JoinFunc            func(ctx context.Context) ([]string, error)
	Dir                 string
	DirFreeBytes        int64
	SessionTTL          time.Duration
	Logger              *slog.Logger
	Version             string // of this library

	Group       replica.Settings // what this configuration names for the group
	Alone       bool             // it is a node on its own
	Unreachable bool             // which no other process is to reach

	Source *credentials.Source // nil means plain text
	Self   credentials.Peer    // what others see in its certificate; the root tier without one
	World  outside.World

	History io.Writer    // nil: nothing is recorded
	Trace   trace.Config // the observers of locks; Start fills the rest in
	Hooks   *Hooks       // nil: no hook is told what happens to the instance

	// Admin answers programs that are no instances, and Translate makes its errors ones that
	// package queries has words for.
	Admin     query.AdminServer
	Translate func(error) error
	// Disks returns what is missing while disks keep the group from granting, or "".
	Disks func() string
}

// Hooks are told what has happened to an instance, one at a time. Nil is told nothing.
type Hooks struct {
	Renewed, Session, Lease, Leader, Member, Available, Synced func(NodeEvent)
}

// NodeEvent is what has happened to an instance. Its fields are those of mortise.NodeEvent.
type NodeEvent struct {
	State    string
	Name     string
	Instance string
	Session  string
	Own      bool
	Term     uint64
	Took     time.Duration
	Left     time.Duration
	Err      error
}

// The words of NodeEvent.State, besides those of session for leases and for the ends of sessions.
const (
	stateAcknowledged = "acknowledged"
	stateUnanswered   = "unanswered"
	stateOpened       = "opened"
	stateNew          = "new"
	stateNone         = "none"
	stateAgain        = "again"
	stateJoined       = "joined"
	stateLeft         = "left"
	stateAvailable    = "available"
	stateUnavailable  = "unavailable"
	stateSynced       = "synced"
	stateFailed       = "failed"
)

// listen opens the port, or a listener without one for a member, which serves nothing, and for a
// node on its own: a port that serves no purpose lets every user of the machine in.
func (c *Config) listen(e env) (net.Listener, error) {
	if c.Self.Tier == credentials.Member {
		return transport.Deaf(), nil
	}
	if c.Unreachable {
		return transport.Deaf(), nil
	}
	listener, err := e.listen(cmp.Or(c.Bind, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("mortise: Config.Bind %q: %w", c.Bind, err)
	}
	return listener, nil
}
