package founding

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestTheNewestConfigurationIsTold(t *testing.T) {
	c := ordinary(false)
	c.Ask(c.now, c.wall, aVoter(),
		AppendPush(nil, Push{To: nodeidtest.ID(5), Group: 98, At: 20, Voters: configuration()}))
	c.Ask(c.now, c.wall, aVoter(),
		AppendPush(nil, Push{To: nodeidtest.ID(6), Group: 99, At: 20, Voters: configuration()}))
	if c.At() != 10 {
		t.Fatalf("configuration %d is taken from another group, or was for another life", c.At())
	}
	c.Ask(c.now, c.wall, aVoter(),
		AppendPush(nil, Push{To: nodeidtest.ID(5), Group: 99, At: 20, Voters: configuration(81)}))
	out := c.Tick(c.now, c.wall, Random{})
	if len(out.Events) != 1 || out.Events[0].Kind != Heard || out.Events[0].At != 20 ||
		!slices.Equal(out.Events[0].Voters, configuration(81)) {
		t.Errorf("the host is told %+v", out.Events)
	}
	who, err := decodeInfo(c.Ask(c.now, c.wall, aVoter(), appendQuestion(nil, question{})))
	if err != nil || who.At != 20 || !slices.Equal(who.Voters, configuration(81)) {
		t.Errorf("the answer has configuration %d, %+v", who.At, who.Voters)
	}
	moved := configuration(81)
	moved[0].Addr, moved[0].Life = "b:2", 2
	c.Voters(c.now, 99, 20, moved)
	if !slices.Equal(c.bond.voters, moved) {
		t.Error("the addresses of the same configuration are not taken")
	}
	if c.Voters(c.now, 99, 30, slices.Repeat(configuration(), 9)); c.At() != 20 {
		t.Error("a configuration is taken that no message can carry")
	}
}

func TestInquire(t *testing.T) {
	c := ordinary(false)
	c.now += time.Second
	if out := c.Tick(c.now, c.wall, Random{}); len(out.Questions) != 0 {
		t.Fatal("a member with a leader asks")
	}
	c.Inquire(c.now, "z:1")
	c.Inquire(c.now, c.self.addr)
	out := c.Tick(c.now, c.wall, Random{})
	if len(out.Questions) != 1 || out.Questions[0].Addr != "z:1" {
		t.Fatalf("it asks %+v, want a question to z:1", out.Questions)
	}
	who := InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "z:1", Phase: Member, Group: 99, At: 21,
		Voters: configuration()}
	c.Result(c.now, out.Questions[0].ID, c.now, Answered, who.Instance, appendInfo(nil, who))
	if c.At() != 21 {
		t.Errorf("it knows configuration %d", c.At())
	}
	if out = c.Tick(c.now+5*time.Second, c.wall, Random{}); len(out.Questions) != 0 {
		t.Error("it goes on asking")
	}
	for i := range 3 * maxAskers { // never answer
		c.now += time.Second
		c.Inquire(c.now, "y"+groupName(uint64(i))+":1")
		c.Tick(c.now, c.wall, Random{})
	}
	if len(c.contacts.seenAt) > 20 {
		t.Errorf("%d places wait to be asked", len(c.contacts.seenAt))
	}
}

func TestAdopt(t *testing.T) {
	c := ordinary(true)
	s := c.bond.rulesOf
	s.SessionTTL = time.Minute
	before := c.Revision()
	if c.Adopt(c.now, 98, s); c.Revision() != before {
		t.Error("settings of another group were taken")
	}
	c.Adopt(c.now, 99, s)
	who, err := decodeInfo(c.Ask(c.now, c.wall, aVoter(), appendQuestion(nil, question{})))
	if err != nil || who.Settings.SessionTTL != time.Minute || c.State().Settings.SessionTTL != time.Minute ||
		c.Revision() == before {
		t.Errorf("it tells %v and stores %v, revision %d", who.Settings, c.State().Settings, c.Revision())
	}
	before = c.Revision()
	if c.Adopt(c.now, 99, s); c.Revision() != before {
		t.Error("the same settings are stored again")
	}
}

func TestPlacesReturn(t *testing.T) {
	v := Voter{Instance: nodeidtest.ID(7), Addr: "b:1", Life: 3}
	enc := AppendPlace(nil, v)
	if got, err := DecodePlace(enc); err != nil || got != v {
		t.Errorf("%+v came back as %+v, %v", v, got, err)
	}
	for n := range enc {
		if _, err := DecodePlace(enc[:n]); err == nil {
			t.Errorf("the first %d bytes were accepted", n)
		}
	}
	if long := AppendPlace(nil, Voter{Instance: nodeidtest.ID(1<<64 - 1), Addr: strings.Repeat("a", maxAddrBytes),
		Life: 1<<64 - 1}); len(long) > 1024 {
		t.Errorf("%d bytes", len(long))
	}
	if !bytes.Equal(AppendPlace([]byte("x"), v)[1:], enc) {
		t.Error("it is not put behind what is there")
	}
}
