package raftlog

import (
	"bytes"
	"reflect"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// If the function open accepts some data, its result must encode to the same data. The parameters
// voters and learners are bit sets of the IDs 1 to 8.
func FuzzEnvelope(f *testing.F) {
	f.Add(enclose(1, testMembers(1, 2, 3), []byte("state")), uint64(1), byte(7), byte(0))
	f.Add(enclose(5, testMembers(1, 2), nil), uint64(9), byte(1), byte(2))
	f.Add(enclose(9, []Member{{ID: 4}, {ID: 8}}, nil), uint64(9), byte(8), byte(128))
	f.Add(enclose(9, testMembers(1, 2), nil), uint64(8), byte(1), byte(2))    // too new
	f.Add(enclose(1, testMembers(2, 1), nil), uint64(1), byte(3), byte(0))    // members not sorted
	f.Add(enclose(1, testMembers(1), nil)[:15], uint64(1), byte(1), byte(0))  // truncated
	f.Add([]byte("a state without an envelope"), uint64(1), byte(1), byte(0)) // not an envelope
	f.Fuzz(func(t *testing.T, data []byte, index uint64, voters, learners byte) {
		conf := &raftpb.ConfState{}
		for i := range uint64(8) {
			switch {
			case voters>>i&1 == 1:
				conf.Voters = append(conf.Voters, i+1)
			case learners>>i&1 == 1:
				conf.Learners = append(conf.Learners, i+1)
			}
		}
		config, state, err := open(&raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{Index: &index,
			ConfState: conf}})
		if err != nil {
			return
		}
		if config.Index > index || len(config.Members) != len(conf.Voters)+len(conf.Learners) {
			t.Fatalf("%+v from a snapshot at %d of %v", config, index, conf)
		}
		if again := enclose(config.Index, config.Members, state); !bytes.Equal(again, data) {
			t.Fatalf("written again: %x", again)
		}
	})
}

func FuzzEntryContext(f *testing.F) {
	f.Add([]byte{})
	f.Add(added(testMembers(7)[0]))
	f.Add(added(Member{ID: 1 << 62}))
	f.Add(append(added(Member{ID: 7}), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		who, err := addedMembers(b)
		if err != nil || len(b) == 0 {
			return
		}
		if len(who) != 1 || !bytes.Equal(added(who[0]), b) {
			t.Fatalf("%x names %+v", b, who)
		}
		again, err := addedMembers(added(who[0]))
		if err != nil || !reflect.DeepEqual(again, who) {
			t.Fatalf("read again: %+v, %v", again, err)
		}
	})
}
