package founding

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// mallory returns an instance that has the secret and a key of its own, but is no voter.
func mallory() Asker { return Asker{nodeidtest.ID(666), "m:1"} }

func mallorys() []Voter {
	return []Voter{{Raft: 66, Instance: mallory().Instance, Addr: mallory().Addr, Life: 1}}
}

// Messages of an instance that is neither a voter nor the leader must not change the known
// configuration or end a replica.
func TestOnlyVotersAndTheLeaderAreBelieved(t *testing.T) {
	const far = uint64(1) << 50
	announce := func(c *Core, at uint64) []byte {
		return AppendPush(nil, Push{To: c.Instance(), Group: 99, At: at, Voters: mallorys()})
	}
	lies := map[string]func(c *Core){
		"it announces": func(c *Core) { c.Ask(c.now, c.wall, mallory(), announce(c, far)) },
		"it prepares": func(c *Core) {
			a, err := DecodePrepared(c.self.instance, c.Ask(c.now, c.wall, mallory(), AppendPrepare(nil, Prepare{
				To: c.Instance(), Group: 99, Raft: 77, Term: 9, At: far, Voters: mallorys(),
			})))
			if err != nil || a.State != Declined {
				t.Errorf("its Prepare is answered with %+v, %v", a, err)
			}
		},
		"it answers": func(c *Core) {
			c.Inquire(c.now, mallory().Addr)
			c.Tick(c.now, c.wall, Random{})
			c.tell(mallory().Addr, InstanceInfo{Instance: mallory().Instance, Name: "m", Addr: mallory().Addr, Phase: Member,
				Group: 99, At: far, Voters: mallorys()})
		},
		"a voter prepares in a term that no group has": func(c *Core) {
			if c.Ask(c.now, c.wall, aVoter(), AppendPrepare(nil, Prepare{
				To: c.Instance(), Group: 99, Raft: 77, Term: maxAt + 1, At: 11, Voters: configuration(0x11),
			})) != nil {
				t.Error("an impossible term is answered")
			}
		},
		"a voter tells a number that no log has": func(c *Core) {
			if c.Ask(c.now, c.wall, aVoter(), announce(c, maxAt+1)) != nil {
				t.Error("an impossible number is answered")
			}
		},
	}
	for name, lie := range lies {
		for _, durable := range []bool{false, true} {
			c := ordinary(durable)
			c.bring(t, 0x11, 1, 10, configuration())
			c.Voters(c.now, 99, 11, configuration(0x11))
			c.happened()
			before, voters := c.At(), slices.Clone(c.bond.newest())
			for range 3 {
				lie(c)
				for _, e := range c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)}).Events {
					t.Errorf("%s (directory: %v): the host is told %+v", name, durable, e)
				}
				c.now += time.Second
			}
			if c.At() != before || !slices.Equal(c.bond.newest(), voters) || c.Raft() != 0x11 || c.replica.spent(0x11) {
				t.Errorf("%s (directory: %v): configuration %d of %v, replica %x", name, durable, c.At(), c.bond.newest(),
					c.Raft())
			}
			c.Ask(c.now, c.wall, aVoter(),
				AppendPush(nil, Push{To: c.Instance(), Group: 99, At: 12, Voters: configuration()}))
			if c.At() != 12 {
				t.Errorf("%s (directory: %v): the true configuration is not taken any more", name, durable)
			}
		}
	}
}

func TestTheLeaderIsBelieved(t *testing.T) {
	c := ordinary(false)
	c.Guide(mallory().Instance)
	c.Ask(c.now, c.wall, mallory(),
		AppendPush(nil, Push{To: c.Instance(), Group: 99, At: 20, Voters: mallorys()}))
	if c.At() != 20 {
		t.Errorf("the leader's word is not taken: configuration %d", c.At())
	}
}

// No known voter has answered for a TTL. An instance without a directory ends its incarnation. An
// instance with a directory keeps its group and its replica until a known voter answers.
func TestAllVotersReplacedWhileCutOff(t *testing.T) {
	newer := []Voter{
		{Raft: 21, Instance: nodeidtest.ID(21), Addr: "x:1", Life: 1}, {Raft: 22, Instance: nodeidtest.ID(22),
			Addr: "y:1", Life: 1},
		{Raft: 23, Instance: nodeidtest.ID(23), Addr: "z:1", Life: 1},
	}
	say := func(c *Core, from nodeid.ID) {
		c.Ask(c.now, c.wall, Asker{from, "q:1"},
			AppendPush(nil, Push{To: c.Instance(), Group: 99, At: 30, Voters: newer}))
	}
	for _, tc := range []struct {
		name           string
		durable, votes bool
		wait           time.Duration
		anew           bool
	}{
		{"in memory, too early", false, false, simTTL, false},
		{"in memory", false, false, simTTL + time.Second, true},
		{"a voter in memory", false, true, simTTL + time.Second, true},
		{"with a directory, too early", true, true, simTTL, false},
		{"with a directory, no voter", true, false, simTTL + time.Second, false},
		{"with a directory, a voter", true, true, simTTL + time.Second, false},
	} {
		c := ordinary(tc.durable)
		if tc.votes {
			c.bring(t, 0x11, 1, 10, configuration())
			voting := configuration(0x11)
			voting[3].Learner = false
			c.Voters(c.now, 99, 11, voting)
		}
		c.Leader(c.now, false)
		c.happened()
		c.now += tc.wait
		for _, v := range newer {
			say(c, v.Instance)
		}
		if c.At() == 30 {
			t.Errorf("%s: it believes instances that name themselves", tc.name)
		}
		c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
		if anew := c.Phase() == Newborn; anew != tc.anew {
			t.Errorf("%s: then it is %v", tc.name, c.Phase())
		}
		if tc.durable && tc.votes && (c.Raft() != 0x11 || c.replica.spent(0x11)) {
			t.Errorf("%s: it has lost its replica: %x", tc.name, c.Raft())
		}
	}
}

// A report about another start of an instance changes no address and bars no directory, unless a
// voter sends it. Implausibly high lives are ignored.
func TestHearsayAboutLives(t *testing.T) {
	c := settled(Member)
	c.contacts.askedBy(c.now, c.self.addr, "m:1")
	c.tell("m:1", InstanceInfo{
		Instance: mallory().Instance, Name: "m", Addr: "m:1", Phase: Member, Group: 99, AskerLife: 9,
		AskerAddr: "z:1", Voters: configuration(),
	})
	if c.Tick(c.now, c.wall, Random{}); c.Refusal() != "" {
		t.Errorf("any instance bars a directory: %s", c.Refusal())
	}
	b := Book{}
	b.Configure(5, configuration())
	if b.Hear(Voter{Raft: 12, Instance: nodeidtest.ID(7), Addr: "m:1", Life: 1 << 63}, true) {
		t.Error("a life number that no directory has pins an address")
	}
}
