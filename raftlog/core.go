package raftlog

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

// CoreConfig configures a Core. The numbers are those of Config, without a default unless stated
// here.
type CoreConfig struct {
	State            State      // contents of the replica's Store; its Identity names the replica
	Now              clock.Time // the first tick is due one Tick later
	Tick             time.Duration
	ElectionTicks    int
	HeartbeatTicks   int
	EntriesInFlight  int
	QueueBytes       int
	EntryBytes       int // batches share an entry up to this size; default 1 MiB
	UncommittedBytes int // raft refuses proposals beyond this; default 64 MiB
	SnapshotBytes    int
	KeepEntries      int                                     // zero or less means none
	Deferrable       func(waiting []byte, settled bool) bool // as in Config
	Logger           *slog.Logger
}

// Core is a replica without goroutine, clock, disk or network: inputs are method calls, and Turn
// returns what must be done. Equal inputs give equal outputs, apart from the election timeouts,
// which raft draws from crypto/rand.
//
// The owner calls input methods, and then Turn until the Output is idle. It must carry out each
// Output before it calls another method. Only Save, Prepare and Take may take longer; the owner
// reports that they are complete by Stored, Prepared and Snapshotted.
//
// A Core is not safe for concurrent use. A panic means that raft found a contradiction in this
// replica's data or messages. The owner must recover and not use the Core again.
type Core struct {
	cfg  CoreConfig
	id   uint64
	node *raft.RawNode
	view *view

	// Invariants: view.snap <= applied <= commit, and applied is at most the last stored index. The
	// field transferee is raft's value at the last call of observe, and commit that of raft's last
	// Ready.
	role       Role
	commit     uint64
	transferee uint64
	applied    uint64 // last index handed out in an event
	last       uint64 // last index handed to storage
	durable    uint64 // last index of the last append that is durable
	ticked     clock.Time
	rested     bool // the replica has been at rest since the last Tick
	unseen     bool // the Survey may have changed since Surveyed
	ticks      uint64
	heard      map[uint64]hearing // for every member of config
	ledAt      uint64             // tick of the leader's last message

	lostTerm   uint64 // last term whose leader was reported gone; zero means none
	unsettled  uint64 // tick until which messages are duplicated
	duplicated int    // messages duplicated since the last tick
	asking     asking
	group      group  // batches and rounds that wait, all of role.Term
	backs      uint64 // the last group.back
	deferral   uint64 // the group.back whose reminder is under way; zero means none
	appends    appends
	hang       hang
	// of the last applied configuration entry; voters and learners derive from it
	conf             *raftpb.ConfState
	voters, learners []uint64
	config           Configuration     // the same, with the contexts of the members
	since            int               // bytes of entries applied since the beginning of the last snapshot
	taking           taking            // the snapshot being taken here
	taken            uint64            // snapshots taken
	commits          []*raftpb.Message // at most one for each follower, until the next tick
	withheld         []*raftpb.Message // messages to learners, until a majority knows the configuration
	applies          []*raftpb.Message // raft's requests to apply entries, in order

	out  Output            // being collected
	done Output            // the Output that was handed out last; its memory is reused
	due  []*raftpb.Message // responses to be delivered by the next Turn
	held []*raftpb.Message // responses that are moved to due when the owner has carried out the present Output
}

// NewCore starts a replica from what its store holds. The first Turn reports the stored snapshot,
// if any, as a Restored event.
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
	c := &Core{cfg: cfg, id: cfg.State.Identity.ID, ticked: cfg.Now, view: newView(), heard: map[uint64]hearing{}}
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
	})
	must(err)
	c.node = node
	c.commit = hard.GetCommit()
	c.observe()
	return nil
}

// checkState validates the stored log and returns the hard state to start from. The stored commit
// index may be lower than the index of the snapshot, because it is never saved alone.
func checkState(st State) (*raftpb.HardState, error) {
	if st.Identity.Group == 0 || st.Identity.ID == 0 || raft.IsLocalMsgTarget(st.Identity.ID) {
		return nil, fmt.Errorf("%w: it names no replica; initialize it with Found or Join", ErrIdentity)
	}
	meta := st.Snapshot.GetMetadata()
	last, term := meta.GetIndex(), meta.GetTerm()
	for _, e := range st.Entries {
		if e.GetIndex() <= meta.GetIndex() {
			continue // a store may keep entries that the snapshot includes
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
