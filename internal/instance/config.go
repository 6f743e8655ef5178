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

// Config is mortise.Config after validation, with its defaults and without its secrets.
type Config struct {
	Name, Cluster, Zone string
	Bind, Advertise     string
	Join                []string
	JoinFunc            func(ctx context.Context) ([]string, error)
	Dir, RunDir         string // at most one of them
	DirFreeBytes        int64
	SessionTTL          time.Duration
	Stays               int // see client.Config, also for StayIdle
	StayIdle            time.Duration
	Logger              *slog.Logger
	Version             string // of this library

	Group       replica.Settings // settings of the group, from this instance's configuration
	Alone       bool             // the instance joins no others: Join and JoinFunc are not set
	Unreachable bool             // the instance opens no socket, so no other process can reach it

	Source *credentials.Source // nil means plain text
	Self   credentials.Peer    // what the certificate proves; the root tier if TLS is off
	World  outside.World

	History io.Writer    // nil means no recording
	Trace   trace.Config // only the hooks for locks; Start sets the other fields
	Hooks   *Hooks       // nil means none

	// Admin serves admin clients. Translate converts the errors of Admin to those that package
	// queries can encode.
	Admin     query.AdminServer
	Translate func(error) error
	// Disks returns a description of the disk faults if they prevent the group from granting locks,
	// and "" otherwise.
	Disks func() string
}

// Hooks are called with the events of an instance, one at a time. A nil function is not called.
type Hooks struct {
	Node   func(NodeEvent)
	Synced func(took time.Duration, err error) // after each append to the log on disk
}

// NodeEvent is an event of an instance. Its fields are those of mortise.NodeEvent.
type NodeEvent struct {
	State   string
	Leader  string
	Session string
	Term    uint64
	Took    time.Duration
	Left    time.Duration
}

// The values of NodeEvent.State, besides those of package session.
const (
	stateAcknowledged = "acknowledged"
	stateUnanswered   = "unanswered"
	stateOpened       = "opened"
	stateNew          = "new"
	stateNone         = "none"
	stateAgain        = "again"
	stateAvailable    = "available"
	stateUnavailable  = "unavailable"
)

// listen opens the port. A member opens no socket, and neither does a node on its own without a
// Bind address, because they serve no other process.
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
