package raftlog

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

// CoreConfig configures a Core. The fields that are also in Config are documented there. In a
// CoreConfig they have no defaults.
type CoreConfig struct {
	State            State      // contents of the Store; State.Identity has the ID of the replica
	Now              clock.Time // the first tick is due one Tick later
	Tick             time.Duration
	ElectionTicks    int
	HeartbeatTicks   int
	SilenceTicks     int           // as in Config
	GapWindow        time.Duration // of the detector; default a minute
	EntriesInFlight  int
	QueueBytes       int
	EntryBytes       int // largest entry that several batches share; default 1 MiB
	UncommittedBytes int // largest amount of uncommitted entries; default 64 MiB
	SnapshotBytes    int
	KeepEntries      int                                     // zero or less means none
	Deferrable       func(waiting []byte, settled bool) bool // as in Config
	Queued           func(batch []byte)                      // as in Config
	Digest           func() uint64                           // as in Config
	Logger           *slog.Logger
	// RaftTrace receives raft's own trace points, in a program that is built with the tag with_tla.
	// Nil means none.
	RaftTrace RaftTracer
}

// RaftTracer is raft.TraceLogger, which has a method only with the build tag with_tla.
type RaftTracer = raft.TraceLogger

// Core is the logic of a replica, without goroutine, clock, disk or network. Its inputs are method
// calls, and Turn returns the work that the caller must do. Only raft's election timeouts are
// random, from crypto/rand.
//
// The owner calls some input methods, and then calls Turn until Turn returns an idle Output. The
// owner must carry out each Output before it calls another method. Only the work of Save, Prepare
// and Take may take longer. The owner reports the end of this work by Stored, Prepared and
// Snapshotted.
//
// A Core is not safe for concurrent use. A panic means that raft found a contradiction in this
// replica's data or messages. The owner must recover and not use the Core again.
type Core struct {
	cfg  CoreConfig
	id   uint64
	node *raft.RawNode
	view *view

	// Invariants: view.snap's index <= applied <= commit, and applied <= durable. transferee is
	// raft's LeadTransferee at the last call of observe. commit is the commit index in raft's last
	// Ready.
	role       Role
	commit     uint64
	transferee uint64
	applied    uint64 // index of the last entry whose event was handed out
	last       uint64 // index of the last entry handed to storage
	durable    uint64 // last index of the newest append that is durable
	ticked     clock.Time
	rested     bool // Core.rests returned true in the last Tick or in a later Turn
	unseen     bool // the Survey may have changed since the last call of Surveyed
	ticks      uint64
	hearings   hearings
	detector   detector

	lostTerm   uint64 // last term in which PeerLost reported the leader lost; zero means none
	duplicates duplicates
	asking     asking
	group      group // the leader's state in role.Term, with the waiting batches and rounds
	deferrals  deferrals
	appends    appends
	hang       hang
	compared   compared
	members    members
	snapshots  snapshots
	heldBack   heldBack
	applies    []*raftpb.Message // raft's requests to apply entries, in order
	outputs    outputs
	responses  responses
}

// NewCore returns the Core of a replica with the contents of its store. If the store has a
// snapshot, the first Turn returns a Restored event with it.
func NewCore(cfg CoreConfig) (_ *Core, err error) {
	if cfg.EntryBytes == 0 {
		cfg.EntryBytes = 1 << 20
	}
	if cfg.UncommittedBytes == 0 {
		cfg.UncommittedBytes = 64 << 20
	}
	hard, err := checkState(cfg.State)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: raft refuses it: %v", ErrCorrupt, p)
		}
	}()
	c := &Core{cfg: cfg, id: cfg.State.Identity.ID, ticked: cfg.Now, view: newView()}
	c.detector = newDetector(cmp.Or(cfg.SilenceTicks, cfg.ElectionTicks), cfg.ElectionTicks, cfg.HeartbeatTicks,
		int(cmp.Or(cfg.GapWindow, gapWindow)/cfg.Tick))
	c.hearings.of = map[uint64]hearing{}
	c.appends.hard, c.appends.saved, c.appends.commit = hard, cfg.State.HardState, hard.GetCommit()
	if err := c.start(hard); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Core) start(hard *raftpb.HardState) error {
	st := c.cfg.State
	if !raft.IsEmptySnap(st.Snapshot) {
		if err := c.installed(st.Snapshot); err != nil {
			return err
		}
	}
	if hard != nil {
		must(c.view.SetHardState(hard))
	}
	behind := slices.IndexFunc(st.Entries, func(e *raftpb.Entry) bool { return e.GetIndex() > c.applied })
	if behind >= 0 {
		must(c.view.Append(st.Entries[behind:]))
	}
	c.last, _ = c.view.LastIndex()
	c.durable = c.last
	node, err := raft.NewRawNode(&raft.Config{
		ID:                        c.id,
		ElectionTick:              c.cfg.ElectionTicks,
		HeartbeatTick:             c.cfg.HeartbeatTicks,
		Storage:                   c.view,
		Applied:                   c.applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             1 << 20,
		MaxCommittedSizePerReady:  16 << 20,
		MaxUncommittedEntriesSize: uint64(c.cfg.UncommittedBytes),
		MaxInflightMsgs:           256,
		MaxInflightBytes:          32 << 20,
		CheckQuorum:               true,
		PreVote:                   true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		Logger:                    raftLogger{c.cfg.Logger},
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		TraceLogger:               c.cfg.RaftTrace,
	})
	must(err)
	c.node = node
	c.commit = hard.GetCommit()
	c.observe()
	return nil
}

// checkState validates the stored log and returns the hard state to start from. The stored commit
// index may be lower than the snapshot's index, because a new commit index alone causes no Save.
func checkState(st State) (*raftpb.HardState, error) {
	if st.Identity.Group == 0 || st.Identity.ID == 0 || raft.IsLocalMsgTarget(st.Identity.ID) {
		return nil, fmt.Errorf("%w: it names no replica; initialize it with Found or Join", ErrIdentity)
	}
	meta := st.Snapshot.GetMetadata()
	last, term := meta.GetIndex(), meta.GetTerm()
	for _, e := range st.Entries {
		if e.GetIndex() <= meta.GetIndex() {
			continue // a store may keep entries that the snapshot covers
		}
		if e.GetIndex() != last+1 || e.GetTerm() < term {
			return nil, fmt.Errorf("%w: entry %d of term %d follows entry %d of term %d", ErrCorrupt, e.GetIndex(),
				e.GetTerm(), last, term)
		}
		last, term = e.GetIndex(), e.GetTerm()
	}
	hs := st.HardState
	if hs == nil {
		if last != 0 {
			return nil, fmt.Errorf("%w: it holds entries but no term", ErrCorrupt)
		}
		return nil, nil
	}
	commit := max(hs.GetCommit(), meta.GetIndex())
	if commit > last || hs.GetTerm() < term {
		return nil, fmt.Errorf("%w: term %d and commit %d do not fit a log that ends with entry %d of term %d",
			ErrCorrupt,
			hs.GetTerm(), commit, last, term)
	}
	return &raftpb.HardState{Term: new(hs.GetTerm()), Vote: new(hs.GetVote()), Commit: &commit}, nil
}
