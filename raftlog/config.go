package raftlog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

// Config says what a Log is made of. Zero means the documented default; fields without one are
// required. The Log keeps a copy.
type Config struct {
	// Group and ID name the log; the store must hold the same (see Found). Never zero.
	Group, ID uint64

	// Store keeps the log. The Log owns it from a successful Start on and closes it.
	Store Store

	// Applier is what the log is for.
	Applier Applier

	// Send hands messages to the other replicas, each named by its To. It must not block and may
	// lose any of them. The messages are shared with raft: they may be kept and must not be
	// changed. The slice is used again. Called on the owner goroutine.
	Send func([]*raftpb.Message)

	// SendDuplicates hands messages that Send has been given to a second way to the same replicas,
	// which loses other packets than the first. Otherwise it is like Send. Default: there is no
	// second way.
	SendDuplicates func([]*raftpb.Message)

	// SendSnapshot sends one message that carries a snapshot (m.Snapshot) to replica m.To. It must
	// not block, and must call done once, at any time and on any goroutine, with whether the
	// receiver has taken the message: until then that replica gets nothing else.
	SendSnapshot func(m *raftpb.Message, done func(ok bool))

	// Clock is what ticks are measured by. Default clock.Boot().
	Clock clock.Clock

	// Tick is raft's unit of time. Default 50 ms.
	Tick time.Duration

	// ElectionTicks is the election timeout: a follower that has not heard of its leader for
	// between one and two of it campaigns, and a leader that has not heard of a majority for one of
	// it steps down. Default 10.
	ElectionTicks int

	// HeartbeatTicks is the time between two heartbeats of a leader. Default 1.
	HeartbeatTicks int

	// EntriesInFlight is how many entries may be proposed and not applied. What comes meanwhile
	// travels together in the next one, which behind many commands waits until there are as many
	// again, at most until the next tick. Default 2.
	EntriesInFlight int

	// Patient may say of batches that wait to be proposed, put together, that nobody is kept
	// waiting if they go no earlier than with the next one that is not patient: they wait for that,
	// 2 to 4 ms at most. settled says that no entry is under way that could change what the Applier
	// knows. It must not change anything, nor keep the bytes. Called on the owner goroutine,
	// between calls of the Applier. Default: none is.
	Patient func(waiting []byte, settled bool) bool

	// QueueBytes bounds what waits to be proposed. Default 64 MiB.
	QueueBytes int

	// SnapshotBytes is how many bytes of entries are applied between the beginnings of two
	// snapshots, at least; more if the snapshot itself is larger, and up to half as much again, so
	// that replicas seldom take theirs at the same moment. Default 4 MiB.
	SnapshotBytes int

	// KeepEntries is how many entries are kept behind a snapshot, so that a replica that lags a
	// little need not be sent one. They are kept only up to SnapshotBytes. Default 4096, negative:
	// none.
	KeepEntries int

	// Logger gets few lines. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.Boot()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Tick = cmp.Or(c.Tick, 50*time.Millisecond)
	c.ElectionTicks = cmp.Or(c.ElectionTicks, 10)
	c.HeartbeatTicks = cmp.Or(c.HeartbeatTicks, 1)
	c.EntriesInFlight = cmp.Or(c.EntriesInFlight, 2)
	c.QueueBytes = cmp.Or(c.QueueBytes, 64<<20)
	c.SnapshotBytes = cmp.Or(c.SnapshotBytes, 4<<20)
	c.KeepEntries = cmp.Or(c.KeepEntries, 4096)
	return c
}

// validate returns all mistakes at once.
func (c Config) validate() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("raftlog: "+format, args...))
		}
	}
	wrong(c.Group == 0, "Group must not be zero")
	wrong(c.ID == 0, "ID must not be zero")
	wrong(c.Store == nil, "Store is missing")
	wrong(c.Applier == nil, "Applier is missing")
	wrong(c.Send == nil, "Send is missing")
	wrong(c.SendSnapshot == nil, "SendSnapshot is missing")
	wrong(c.Tick <= 0, "Tick must be positive, not %v", c.Tick)
	wrong(c.HeartbeatTicks <= 0, "HeartbeatTicks must be positive, not %d", c.HeartbeatTicks)
	wrong(c.ElectionTicks <= c.HeartbeatTicks, "ElectionTicks must be above HeartbeatTicks: %d is not above %d",
		c.ElectionTicks, c.HeartbeatTicks)
	wrong(c.EntriesInFlight <= 0, "EntriesInFlight must be positive, not %d", c.EntriesInFlight)
	wrong(c.QueueBytes <= 0, "QueueBytes must be positive, not %d", c.QueueBytes)
	wrong(c.SnapshotBytes <= 0, "SnapshotBytes must be positive, not %d", c.SnapshotBytes)
	return errors.Join(errs...)
}
