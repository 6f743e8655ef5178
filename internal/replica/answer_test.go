package replica

import (
	"reflect"
	"testing"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// TestSessionsBecomeMembers compares a whole page of members with the sessions from which it is
// made. Expired sessions, and those of NewSession, are no members.
func TestSessionsBecomeMembers(t *testing.T) {
	var g SessionIndex
	g.members.Store(9)
	names := map[nodeid.ID]string{nodeidtest.ID(1): "known"}
	g.named.Store(&names)
	place := func(raft, instance uint64) raftlog.Member {
		return raftlog.Member{ID: raft, Context: founding.AppendPlace(nil, founding.Voter{Raft: raft,
			Instance: nodeidtest.ID(instance), Addr: "a:1"})}
	}
	// instance 1 has a learner and a voter, and 2 only a learner
	c := raftlog.Configuration{Voters: []uint64{12}, Members: []raftlog.Member{place(11, 1), place(12, 1), place(13, 1),
		place(14, 2)}}
	record := Record{Instance: "other", Name: "n", Addr: "a", Zone: "z", Version: "v", For: "f", Since: 6}
	session := func(id, instance uint64, r Record) lockfsm.SessionInfo {
		return lockfsm.SessionInfo{ID: lockfsm.SessionID(id), Opener: lockfsm.Opener{Instance: nodeidtest.ID(instance)},
			Record: r.Encode()}
	}
	one, two, own, gone := session(5, 1, record), session(6, 2, record), session(7, 1, record.OwnSession()),
		session(8, 1, record)
	two.Leaving, gone.Gone = true, true
	root := capability.Root.String()
	for _, first := range []bool{false, true} {
		for _, more := range []bool{false, true} {
			a := Answer{Sessions: []lockfsm.SessionInfo{one, two, own, gone}, More: more,
				From: lockfsm.SessionCursor{At: 3, Past: 4}}
			want := Answer{From: a.From, More: more, Names: names, Total: 9, Members: []Listed{
				{Session: 5, Instance: nodeidtest.ID(1), Name: "n", Addr: "a", Zone: "z", Version: "v", Tier: root, For: "f",
					Since: 6, Votes: true},
				{Session: 6, Instance: nodeidtest.ID(2), Name: "n", Addr: "a", Zone: "z", Version: "v", Tier: root, For: "f",
					Since: 6, Leaving: true}}}
			if first && !more {
				want.Total = 2 // it is the whole list
			}
			if a.AsMembers(first, &c, &g); !reflect.DeepEqual(a, want) {
				t.Errorf("first %v, more %v: %+v\nwant %+v", first, more, a, want)
			}
		}
	}
}

// TestTheTierOfAMember checks it for each claim of a record, with and without a derived secret.
// Only the leader writes the tier, and only into the record of such a secret.
func TestTheTierOfAMember(t *testing.T) {
	member, guest, root := capability.Member.String(), capability.Guest.String(), capability.Root.String()
	for _, c := range []struct {
		record  Record
		derived bool
		want    string
	}{
		{Record{}, false, root}, {Record{Tier: member}, false, root}, {Record{Tier: guest}, false, root},
		{Record{Guest: true}, false, guest}, {Record{Guest: true, Tier: member}, false, guest},
		{Record{}, true, guest}, {Record{Tier: guest}, true, guest}, {Record{Tier: "another"}, true, guest},
		{Record{Tier: member}, true, member}, {Record{Tier: member, Guest: true}, true, member},
	} {
		opener := lockfsm.Opener{Instance: nodeidtest.ID(1)}
		if c.derived {
			opener.Capability[3] = 1
		}
		if got := c.record.tier(opener); got != c.want {
			t.Errorf("%+v, derived %v: %q, want %q", c.record, c.derived, got, c.want)
		}
	}
}

// TestAnAnswerIsAboutItsSessions checks that each session of a list or of a queue counts once.
func TestAnAnswerIsAboutItsSessions(t *testing.T) {
	queue := func(ids ...lockfsm.SessionID) (l lockfsm.LockInfo) {
		for _, id := range ids {
			l.Queue = append(l.Queue, lockfsm.Standing{Session: id, Place: 99})
		}
		return l
	}
	a := Answer{Sessions: []lockfsm.SessionInfo{{ID: 7}, {ID: 3}},
		Locks: []lockfsm.LockInfo{queue(5, 7), queue(), queue(1)}}
	if got, want := a.About(), []lockfsm.SessionID{1, 3, 5, 7}; !reflect.DeepEqual(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if got := new(Answer).About(); got != nil {
		t.Errorf("an empty answer is about %d", got)
	}
}

// TestEachChangeHasItsCommand compares the whole command of each kind of question, all of whose
// fields are set. A question that changes nothing has none.
func TestEachChangeHasItsCommand(t *testing.T) {
	rights, err := capability.For("cron", "lock jobs/*")
	if err != nil {
		t.Fatal(err)
	}
	full := Question{Key: "k", Prefixes: allKeys, Token: 3, Lock: "l", By: "by", Reason: "why", Asker: nodeidtest.ID(4),
		Next: lockfsm.Cursor{Key: "n", Place: 5}, Rights: rights, After: 6, Nonce: lockfsm.Nonce{7}, Value: []byte("v"),
		From: lockfsm.SessionCursor{At: 8}}
	want := map[Op]lockfsm.Command{
		OpEvict: {Kind: lockfsm.Evict, Token: 3, Record: []byte("by"), Value: []byte("why"), Rights: rights.Text()},
		OpLead:  {Kind: lockfsm.Lead, Record: []byte("by"), Value: []byte("why")},
		OpPut:   {Kind: lockfsm.Put, Revision: 6, Nonce: lockfsm.Nonce{7}, Value: []byte("v"), Token: 3, Lock: "l"},
		OpValue: {Kind: lockfsm.SetValue, Token: 3, Seq: 6, Value: []byte("v"), Opener: lockfsm.Opener{
			Instance: nodeidtest.ID(4), Capability: rights.Hash()}},
		OpReserve: {Kind: lockfsm.Reserve, Count: 6},
	}
	for _, op := range ops(t) {
		q := full
		q.Op = op
		wanted, changes := want[op]
		wanted.Number, wanted.Key = 9, "k"
		if c, is := q.Command(9); is != changes || !reflect.DeepEqual(c, wanted) {
			t.Errorf("%s: %v, %+v\nwant %+v", op, is, c, wanted)
		}
	}
	evict, put := full, full
	evict.Op, evict.Rights, put.Op, put.Token = OpEvict, nil, OpPut, 0
	if c, _ := evict.Command(9); c.Rights != "" {
		t.Errorf("an instance ends a hold under the rights %q", c.Rights)
	}
	if c, _ := put.Command(9); c.Token != 0 || c.Lock != "" {
		t.Errorf("a Put that no hold guards: %+v", c)
	}
}

// TestEachStepHasItsChange compares the change of the configuration for each kind of step.
func TestEachStepHasItsChange(t *testing.T) {
	about := founding.Voter{Raft: 9, Instance: nodeidtest.ID(4), Addr: "a:1"}
	want := map[voters.Kind]raftlog.Change{
		voters.AddLearner: {Add: &raftlog.Member{ID: 3, Context: founding.AppendPlace(nil, about)}},
		voters.Change:     {Promote: []uint64{5}, Demote: []uint64{6}, Remove: []uint64{7}},
	}
	for kind := voters.None; kind <= voters.Transfer+1; kind++ {
		step := voters.Step{Kind: kind, ID: 3, Instance: nodeidtest.ID(8), Promote: []uint64{5}, Demote: []uint64{6},
			Remove: []uint64{7}}
		wanted, changes := want[kind]
		if c, is := Change(step, about); is != changes || !reflect.DeepEqual(c, wanted) {
			t.Errorf("%v: %v, %+v, want %+v", kind, is, c, wanted)
		}
	}
	list := members([]founding.Voter{about, {Raft: 10, Instance: nodeidtest.ID(5), Addr: "b:1"}})
	c := raftlog.Configuration{Voters: []uint64{9, 10}, Members: list}
	if got := Placed(&c); len(got) != 2 || got[0] != about || got[1].Raft != 10 || got[1].Addr != "b:1" {
		t.Errorf("the founders are %+v", got)
	}
}

// TestWhichLeaderIsKnown checks the leader of an instance with and without a replica.
func TestWhichLeaderIsKnown(t *testing.T) {
	h := &heard{book: map[uint64]founding.Voter{2: {Raft: 2, Instance: nodeidtest.ID(2), Addr: "book:2"}}}
	c := NewCore(CoreConfig{Group: 1, ID: 4, Keeper: toKeeper{h}, Cluster: toCluster{h}, Host: h})
	attached := nodeid.Endpoint{ID: nodeidtest.ID(7), Addr: "attached:7"}
	book := nodeid.Endpoint{ID: nodeidtest.ID(2), Addr: "book:2"}
	for _, s := range []struct {
		view   *View
		leader uint64
		want   nodeid.Endpoint
		knows  bool // without an attached session
	}{{nil, 0, attached, false}, {c.View, 0, attached, false}, {c.View, 2, book, true}, {c.View, 3, attached, true}} {
		c.Role(raftlog.Role{Term: 1, Leader: s.leader})
		if got := s.view.LeaderOr(toCluster{h}, attached); got != s.want {
			t.Errorf("leader %d: %+v, want %+v", s.leader, got, s.want)
		}
		if s.view.KnowsLeader(false) != s.knows || !s.view.KnowsLeader(true) {
			t.Errorf("leader %d is known: %v", s.leader, s.view.KnowsLeader(false))
		}
	}
	want := []nodeid.Endpoint{book, {ID: nodeidtest.ID(3), Addr: "c:3"}}
	got := Targets([]founding.Voter{h.book[2], {Raft: 9, Instance: nodeidtest.ID(3), Addr: "c:3"}})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
