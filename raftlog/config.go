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

// Config configures a Log. A zero field means its documented default. Fields without a default are
// required, unless nil has a documented meaning. The Log keeps a copy.
type Config struct {
	// Group is the ID of the group, and ID is the raft ID of this replica. Neither may be zero, and
	// the store must hold both (see Found).
	Group, ID uint64

	// Store holds the log of this replica. After a successful Start the Log owns the Store.
	Store Store

	Applier Applier

	// Send sends each message to the replica whose ID is the To of the message. It is called on the
	// owner goroutine. Send must not block, and may lose messages. It may keep the messages but not
	// the slice, and must not change the messages.
	Send func([]*raftpb.Message)

	// SendDuplicates is like Send, but must use a second connection. It gets messages that were
	// also passed to Send. Nil means that there is no second connection.
	SendDuplicates func([]*raftpb.Message)

	// SendSnapshot sends a message with a snapshot to replica m.To. It must not block. It must call
	// done once, at any time and on any goroutine, and report whether the receiver has the message.
	// Until done is called, nothing else is sent to replica m.To.
	SendSnapshot func(m *raftpb.Message, done func(ok bool))

	// Clock counts the ticks. Default clock.Boot().
	Clock clock.Clock

	// Tick is raft's unit of time. Default 50 ms.
	Tick time.Duration

	// ElectionTicks is the election timeout, in ticks. Default 10. A follower starts an election
	// one to two timeouts after the last message from its leader. A leader that has no contact to a
	// majority steps down after one timeout.
	ElectionTicks int

	// HeartbeatTicks is the time between two heartbeats of a leader, in ticks. Default 1.
	HeartbeatTicks int

	// SilenceTicks is the shortest silence of a leader after which a follower may start an election,
	// in ticks. How long it really waits depends on the gaps that it has measured, see detector.go.
	// It must be above twice HeartbeatTicks and at most ElectionTicks. Zero means ElectionTicks: the
	// timeouts of raft alone decide.
	SilenceTicks int

	// EntriesInFlight is the largest number of entries that are proposed and not yet applied.
	// Default 2. Further batches share the next entry. While a large entry is in flight, the next
	// entry waits until it is as large as that entry, but at most until the next tick.
	EntriesInFlight int

	// Deferrable reports whether the waiting batches may wait for the next batch that is not
	// deferrable. The wait ends after 2 to 4 ms at the latest. Deferrable must report true only if
	// this wait delays no caller's answer. The argument waiting is the concatenation of the batches.
	// The argument settled is true if all proposed entries are applied. Deferrable must have no side
	// effects and must not keep the bytes. It is called on the owner goroutine. Nil means that no
	// batch is deferrable.
	Deferrable func(waiting []byte, settled bool) bool

	// Queued is called with each batch that a leader takes into its queue, before it proposes the
	// batch. It must not call the log or keep the bytes. It is called on the owner goroutine. Nil
	// means that nothing is called.
	Queued func(batch []byte)

	// Digest returns a digest of the state of the Applier: a hash that is equal on all replicas that
	// have applied the same entries. The replicas compare it (core_compare.go), and a replica that
	// differs from a majority retires with ErrDiverged. It is called on the owner goroutine after
	// each call of Apply or Restore, and must cost little. Nil means that nothing is compared.
	Digest func() uint64

	// QueueBytes bounds the batches that wait to be proposed. Default 64 MiB.
	QueueBytes int

	// SnapshotBytes is the number of bytes of applied entries after which the next snapshot begins.
	// Default 4 MiB. If the last snapshot is larger, its size is used instead. Up to half of this
	// number is added at random, so that replicas seldom take snapshots at the same time.
	SnapshotBytes int

	// KeepEntries is the largest number of entries before a snapshot that are kept in memory, for
	// replicas that lag a little. Default 4096; negative means none. The kept entries have at most
	// SnapshotBytes in total.
	KeepEntries int

	// Logger receives all log lines. Default slog.Default().
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
	wrong(c.SilenceTicks != 0 && (c.SilenceTicks <= 2*c.HeartbeatTicks || c.SilenceTicks > c.ElectionTicks),
		"SilenceTicks must be above twice HeartbeatTicks and at most ElectionTicks: not %d", c.SilenceTicks)
	wrong(c.EntriesInFlight <= 0, "EntriesInFlight must be positive, not %d", c.EntriesInFlight)
	wrong(c.QueueBytes <= 0, "QueueBytes must be positive, not %d", c.QueueBytes)
	wrong(c.SnapshotBytes <= 0, "SnapshotBytes must be positive, not %d", c.SnapshotBytes)
	return errors.Join(errs...)
}
