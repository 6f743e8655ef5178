package founding

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// An instance that has restarted at another address must not count as two instances.
func TestOneIsNotTwo(t *testing.T) {
	c := newborn(Settings{Replicas: 3, Voters: 3, SessionTTL: 2 * time.Second})
	c.Places([]Entry{{Name: "x", Addrs: []string{"b:1", "b:2"}, Resolved: always}}, nil)
	c.belong(9, 1, nil, "")
	c.now += 3 * time.Second
	c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1"})
	c.now += time.Second
	c.tell("b:2", InstanceInfo{Instance: nodeidtest.ID(8), Name: "b", Addr: "b:2"})
	if c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)}); c.Phase() != Member {
		t.Errorf("having met one other twice it is %v", c.Phase())
	}
	c.now += time.Second
	c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1"})
	if c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)}); c.Phase() != Newborn {
		t.Errorf("having met both at once it is %v: %s", c.Phase(), c.Waiting())
	}
}

// The member belongs to group 9 and lost its leader at one second. The group's largest TTL is 5 s,
// though the member's own settings say 2 s.
func TestWhenAMemberGivesUpItsGroup(t *testing.T) {
	newbornB := InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1"}
	cases := []struct {
		name   string
		after  time.Duration // time since the leader was lost
		answer *InstanceInfo // what the only other instance answers; nil means silence
		leader bool          // the leader is found again before that time has passed
		want   Phase
	}{
		{"all answer, the locks have ended", 5*time.Second + 2, &newbornB, false, Newborn},
		{"the locks may live", 5 * time.Second, &newbornB, false, Member},
		{"the leader was found again", 6 * time.Second, &newbornB, true, Member},
		{"not all answer", time.Hour, nil, false, Member},
		{"the group has a leader elsewhere", time.Hour, &InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1",
			Phase: Member, Group: 9, Leader: true}, false, Member},
		{"the other has no leader either", time.Hour, &InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1",
			Phase: Member, Group: 9}, false, Newborn},
		{"the other is in a group with a leader", time.Hour, &InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1",
			Phase: Member, Group: 8, Leader: true}, false, Newborn},
	}
	for _, tc := range cases {
		c := newborn(Settings{Replicas: 2, Voters: 3, SessionTTL: 2 * time.Second})
		c.Places([]Entry{{Name: "x", Addrs: []string{"b:1"}, Resolved: always}}, nil)
		c.bond.rulesOf = Settings{SessionTTL: 5 * time.Second}
		c.belong(9, 1, nil, "")
		c.Leader(c.now, true)
		c.Leader(c.now, false)
		c.tell("b:1", newbornB) // an answer from before the loss does not count
		c.now += tc.after
		if tc.leader {
			c.Leader(c.now, true)
		}
		if tc.answer != nil {
			c.tell("b:1", *tc.answer)
		}
		c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
		if c.Phase() != tc.want {
			t.Errorf("%s: it is %v, want %v", tc.name, c.Phase(), tc.want)
		}
	}
}
