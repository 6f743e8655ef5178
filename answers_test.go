package mortise

import (
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Each answer of the leader is compared as a whole, with another value in each field, so that no
// field can be left out or take the value of another.

func TestAQueueIsToldWhole(t *testing.T) {
	labels := map[string]string{"l": "x"}
	standing := func(place, token, watch uint64) *query.Standing {
		return &query.Standing{Session: 4, Record: replica.Record{Name: "who"}.Encode(), Place: place, Token: token,
			Watch: watch, Since: 5000, Part: &query.Part{Key: []byte("k"), Mode: uint32(lockfsm.ModeS)},
			Also:  []*query.Part{{Key: []byte("z"), Tree: true, Mode: uint32(lockfsm.ModeX)}},
			Value: shown.Encode("value", labels, nil), Gone: token == 0, Left: int64(time.Second), Kept: token != 0,
			Unsearched: token == 0}
	}
	got := keyInfo(&query.Lock{Key: []byte("k"), Held: 1, Waiting: 7, Data: &query.Data{Value: []byte("d"), Revision: 9},
		Queue: []*query.Standing{standing(11, 3, 0), standing(12, 0, 11), standing(13, 0, 11), standing(14, 0, 11)}})
	holder := Standing{Part: Part{Key: "k", Mode: Shared}, Also: []Part{{Key: "z", Tree: true}},
		Hold: Hold{Holder: "who", Session: "4", Token: 3, Since: time.UnixMilli(5000), Value: "value", Labels: labels,
			Kept: true}, Left: time.Second, WaitsFor: -1}
	waiter := func(behind int) Standing {
		w := holder
		w.Token, w.Since, w.Kept, w.Expired, w.Unsearched, w.WaitsFor = 0, time.Time{}, false, true, true, behind
		return w
	}
	want := KeyInfo{Key: "k", Held: 1, Waiting: 7, Data: []byte("d"), Revision: 9,
		Queue: []Standing{holder, waiter(0), waiter(0), waiter(-1)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestMembersAreToldWhole(t *testing.T) {
	id := nodeidtest.ID(4)
	full := &query.Member{Name: "n", Instance: id[:], Addr: "a:1", Zone: "z", Version: "v", Votes: true,
		Tier: string(TierGuest), For: "for", Session: 5, Leaving: true, Since: 6000}
	got := membersOf(&query.MemberList{Members: []*query.Member{full, {}}})
	want := []Member{{Name: "n", Instance: id.String(), Address: "a:1", Zone: "z", Version: "v", Votes: true,
		Tier: TierGuest, For: "for", Session: "5", Leaving: true, Since: time.UnixMilli(6000)},
		{Instance: nodeid.ID{}.String()}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestSessionsAreToldWhole(t *testing.T) {
	n := alone(t, Config{})
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	own, other := n.Status().Instance, nodeidtest.ID(4).String()
	record := replica.Record{Instance: other, Name: "n", Addr: "a:1", Zone: "z", Version: "v", For: "for",
		Tier: string(TierMember), Since: 6000}
	founder, further := record, record.OwnSession()
	founder.Instance, founder.Tier = own, ""
	list := &query.SessionList{}
	for i, r := range []replica.Record{record, founder, further, {}} {
		list.Sessions = append(list.Sessions, &query.Session{Id: uint64(5 + i), Record: r.Encode(), Ttl: int64(time.Second),
			Left: int64(time.Minute), Leaving: i == 0, Gone: i == 1, Held: 2, Waiting: 3})
	}
	first := SessionInfo{Member: Member{Name: "n (for for)", Instance: other, Zone: "z", Version: "v",
		Tier: TierMember, For: "for", Session: "5", Since: time.UnixMilli(6000), Leaving: true},
		TTL: time.Second, Left: time.Minute, Held: 2, Waiting: 3}
	second, third, fourth := first, first, first
	second.Member.Session, second.Instance, second.Tier, second.Votes = "6", own, TierRoot, true
	second.Leaving, second.Expired = false, true
	third.Member.Session, third.Instance, third.Leaving = "7", "", false
	fourth.Member = Member{Name: replica.HolderName(list.Sessions[3].Record, 8), Tier: TierRoot, Session: "8"}
	for _, reachable := range []bool{false, true} {
		want, asking := []SessionInfo{first, second, third, fourth}, &Node{engine: n.engine}
		if reachable {
			asking.config.Bind = "a:2"
			want[0].Address, want[1].Address = "a:1", "a:1"
		}
		if got := asking.sessionInfos(list.Sessions); !reflect.DeepEqual(got, want) {
			t.Errorf("reachable %v: %+v\nwant %+v", reachable, got, want)
		}
	}
}

func TestErrorsNameTheHolder(t *testing.T) {
	labels := map[string]string{"l": "x"}
	for _, since := range []int64{0, 5000} {
		got := heldError(&client.HeldError{Key: "k", Session: 4, Record: replica.Record{Name: "who"}.Encode(), Token: 3,
			SinceUnixMS: since, Waiters: 7, Value: shown.Encode("value", labels, nil), Kept: true})
		want := &HeldError{Key: "k", Waiters: 7, Hold: Hold{Holder: "who", Session: "4", Token: 3, Value: "value",
			Labels: labels, Kept: true}}
		if since != 0 {
			want.Since = time.UnixMilli(since)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	circle := deadlockError(&client.DeadlockError{Circle: []lockfsm.Link{
		{Session: 4, Record: replica.Record{Name: "who"}.Encode(), Key: "k"}, {Session: 5, Key: "z"}}})
	want := []DeadlockLink{{Holder: "who", Key: "k"}, {Holder: replica.HolderName(nil, 5), Key: "z"}}
	if !reflect.DeepEqual(circle.Circle, want) {
		t.Errorf("%+v, want %+v", circle.Circle, want)
	}
}

func TestHealthIsToldWhole(t *testing.T) {
	ids := []nodeid.ID{nodeidtest.ID(1), nodeidtest.ID(2), nodeidtest.ID(3), nodeidtest.ID(4)}
	p := &instance.Picture{Members: 9}
	for i, id := range ids[:3] {
		p.Cluster.Voters = append(p.Cluster.Voters, cluster.Voter{Raft: uint64(11 + i), Instance: id,
			Addr: string(rune('a'+i)) + ":1"})
	}
	p.Names = instance.InstanceNames{Members: []cluster.Member{{Instance: ids[0], Name: "one", Zone: "z1"},
		{Instance: ids[1], Name: "two", Zone: "z2"}, {Instance: ids[3], Name: "four", Zone: "z4"}}}
	since := time.UnixMilli(5000)
	disk := instance.FaultyDisk{Name: "two", Instance: ids[1].String(),
		DiskFault: instance.DiskFault{State: instance.DiskFailed, Since: since, Cause: "cause", Remedy: "remedy"}}
	got := new(Node).health(p, voters.Report{Eligible: 5, Target: 3, Quorum: true, Due: true,
		Next: voters.Step{Why: "change"}, Surplus: &voters.Surplus{Running: 5, Replicas: 3},
		Missing: []voters.Missing{{ID: 12, Instance: ids[1], Name: "named", SilentFor: time.Second, Heard: true},
			{ID: 99, Instance: ids[3], SilentFor: time.Minute}},
		CannotSurvive: []nodeid.ReplicaID{12, 13, 99}}, ids[0], []string{"remark"}, []instance.FaultyDisk{disk})
	surplus := voters.Surplus{Running: 5, Replicas: 3}
	want := Health{Leader: "one", Eligible: 5, Target: 3, Members: 9, Due: true, Surplus: 2, Change: "change",
		Missing: []MissingVoter{
			{Silent: time.Second, Member: Member{Name: "named", Instance: ids[1].String(), Zone: "z2", Address: "b:1",
				Votes: true, Seen: true}},
			{Silent: time.Minute, Member: Member{Name: "four", Instance: ids[3].String(), Zone: "z4", Votes: true}}},
		CannotLose: []string{"two", "the instance at c:1", "replica " + nodeid.Hex(99)},
		Differs:    []string{"Surplus: " + surplus.String() + "; " + surplus.Next(), "remark"},
		Disks: []DiskFault{{Name: "two", Instance: ids[1].String(), State: DiskFailed, Since: since, Cause: "cause",
			Remedy: "remedy"}},
	}
	want.Advice = want.advice(true, false)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
