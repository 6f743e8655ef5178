package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestMembersAtTheirBounds(t *testing.T) {
	members := func(n int) (all []Member) {
		for i := range n {
			all = append(all, Member{ID: uint64(i + 1)})
		}
		return all
	}
	plans := func(c Configuration, m Member) bool {
		_, ok := c.plan(Change{Add: &m})
		return ok
	}
	founds := func(voters []Member) bool { return Found(NewMemoryStore(), 1, 1, voters, nil) == nil }
	limits.AtMost(t, "maxContext of a change", maxContext, func(n int) bool {
		return plans(Configuration{}, Member{ID: 7, Context: make([]byte, n)})
	})
	limits.AtMost(t, "maxContext of a founder", maxContext, func(n int) bool {
		return founds([]Member{{ID: 1, Context: make([]byte, n)}})
	})
	limits.AtMost(t, "maxMembers of a change", maxMembers, func(n int) bool {
		return plans(Configuration{Members: members(n - 1)}, Member{ID: 1 << 20})
	})
	limits.AtMost(t, "maxMembers of founders", maxMembers, func(n int) bool { return founds(members(n)) })
	limits.AtMost(t, "maxDuplicateBytes", maxDuplicateBytes, func(n int) bool {
		return duplicable(&raftpb.Message{Type: raftpb.MsgApp.Enum(),
			Entries: []*raftpb.Entry{{Data: make([]byte, n-entryOverheadBytes)}}})
	})
}
