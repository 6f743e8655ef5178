package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func TestAReportedConfigurationSurvivesACrash(t *testing.T) {
	c, l := lone(t)
	if !l.core.Change(l.role.Term, add(9)) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	for saves := 0; !l.config.has(9); saves++ {
		if saves > 3 {
			t.Fatalf("the change is not applied after %d saves", saves)
		}
		l.sync()
	}
	l.crash(false)
	l.start()
	if !l.config.has(9) {
		t.Errorf("after a crash it has the configuration at %d", l.config.Index)
	}
	c.verify()
}

// A change waits for the Save of its commit index when a snapshot of the leader arrives. Raft
// already has the configuration of the snapshot. If the change were applied to that
// configuration, replica 4 would lose its vote.
func TestASnapshotOvertakesWhatWaitsToBeApplied(t *testing.T) {
	for _, saving := range []bool{false, true} { // whether a Save is running
		c := newCluster(t, 3, 3)
		r := c.replicas[0]
		change, err := proto.Marshal(&raftpb.ConfChangeV2{
			Changes: single(nil, raftpb.ConfChangeAddLearnerNode, 4), Context: added(testMembers(4)[0])})
		must(err)
		entry := func(index uint64, kind raftpb.EntryType, data []byte) *raftpb.Entry {
			return &raftpb.Entry{Index: &index, Term: new(uint64(2)), Type: &kind, Data: data}
		}
		step := func(kind raftpb.MessageType, index, commit uint64, entries ...*raftpb.Entry) {
			m := &raftpb.Message{Type: &kind, To: &r.id, From: new(uint64(2)), Term: new(uint64(2)),
				Index: &index, LogTerm: new(min(index, 2)), Commit: &commit, Entries: entries}
			if kind == raftpb.MsgSnap {
				m.Snapshot = &raftpb.Snapshot{
					Data: append(envelope(5, testMembers(1, 2, 3, 4)), new(machine).snapshot()...),
					Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(9)), Term: new(uint64(2)),
						ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3, 4}}}}
			}
			r.core.Step(m)
			r.turn()
		}
		step(raftpb.MsgApp, 1, 1, entry(2, raftpb.EntryConfChangeV2, change))
		r.sync()
		if !saving {
			step(raftpb.MsgApp, 2, 1, entry(3, raftpb.EntryNormal, []byte("batch"))) // another Save begins
		}
		step(raftpb.MsgApp, 2, 2) // this message commits the change
		if r.config.has(4) {
			t.Fatal("the change is applied before its commit index is durable")
		}
		step(raftpb.MsgSnap, 0, 0)
		for r.save != nil {
			r.sync()
		}
		voters := r.core.node.Status().Config.Voters.IDs()
		if r.core.applied != 9 || r.config.Index != 5 || len(voters) != 4 || len(r.core.applies) != 0 {
			t.Errorf("saving %v: applied is %d, want 9; raft's voters are %v; the configuration is %+v", saving,
				r.core.applied, voters, r.config)
		}
		c.verify()
	}
}
