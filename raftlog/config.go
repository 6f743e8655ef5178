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

// Config configures a Log. A zero field means its documented default; fields without one are
// required. The Log keeps a copy.
type Config struct {
	// Group and ID name the log and must not be zero. They must be those that the store holds (see
	// Found).
	Group, ID uint64

	// After a successful Start the Log owns the Store and closes it.
	Store Store

	Applier Applier

	// Send sends each message to the replica that its To names. It must not block, and may lose
	// messages. It may keep the messages but not the slice, and must not change them. It is called on
	// the owner goroutine.
	Send func([]*raftpb.Message)

	// SendDuplicates sends messages a second time that are also passed to Send. It uses a second
	// connection, on which other packets are lost than on the first. Nil means that there is no
	// second connection.
	SendDuplicates func([]*raftpb.Message)

	// SendSnapshot sends one message that carries a snapshot (m.Snapshot) to replica m.To. It must not
	// block. It must call done once, at any time and on any goroutine, and report whether the receiver
	// has the message. Until then nothing else is sent to that replica.
	SendSnapshot func(m *raftpb.Message, done func(ok bool))

	// Clock measures the ticks. Default clock.Boot().
	Clock clock.Clock

	// Tick is raft's unit of time. Default 50 ms.
	Tick time.Duration

	// ElectionTicks is the election timeout. A follower campaigns after one to two timeouts without
	// its leader. A leader steps down after one election timeout without a majority. Default 10.
	ElectionTicks int

	// HeartbeatTicks is the time between two heartbeats of a leader. Default 1.
	HeartbeatTicks int

	// EntriesInFlight is the number of entries that may be proposed and not yet applied. Batches
	// that arrive in the meantime share the next entry. After a large entry the next entry waits
	// until it is as large, at most until the next tick. Default 2.
	EntriesInFlight int

	// Deferrable reports whether the waiting batches, concatenated, may wait for the next batch
	// that is not deferrable, 2 to 4 ms at most, because no caller gets its answer later. The
	// argument settled is true if no entry is under way that could change the state of the Applier.
	// Deferrable must have no side effects and must not keep the bytes. It is called on the owner
	// goroutine, between calls of the Applier. Nil means that no batch is deferrable.
	Deferrable func(waiting []byte, settled bool) bool

	// QueueBytes bounds the batches that wait to be proposed. Default 64 MiB.
	QueueBytes int

	// SnapshotBytes is the least number of bytes of entries between the beginnings of two
	// snapshots, or the size of the last snapshot if that is larger. Up to half as much is added at
	// random, so that replicas seldom take their snapshots at the same time. Default 4 MiB.
	SnapshotBytes int

	// KeepEntries is the number of entries before a snapshot that are kept, for replicas that lag a
	// little. Together they hold at most SnapshotBytes. Default 4096; negative means none.
	KeepEntries int

	// Logger receives a few lines of log. Default slog.Default().
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
