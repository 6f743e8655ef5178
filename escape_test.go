package mortise

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// nasty clears a terminal, begins a new line, rings the bell and reverses the direction of the
// text.
const nasty = "x\x1b[2J\r\n\a\u009b\u202ey"

func TestNoErrorOrStatusIsRaw(t *testing.T) {
	texts := map[string]string{
		"held":     (&HeldError{Key: nasty, Hold: Hold{Holder: nasty, Value: nasty, Token: 1}}).Error(),
		"waited":   (&HeldError{Key: nasty, Hold: Hold{Holder: nasty, Value: nasty}}).Error(),
		"deadlock": (&DeadlockError{Circle: []DeadlockLink{{nasty, nasty}}}).Error(),
		"forced":   (&ForcedError{By: nasty, Reason: nasty}).Error(),
		"resumed":  (&ForcedError{By: nasty, Resumed: true}).Error(),
		"holder": replica.HolderName([]byte(`{"name":"x\u001b[2J\u202e","Name":"x\u001b[2J\u202e"}`),
			lockfsm.SessionID(1)),
	}
	for what, text := range texts {
		if plain.Text(text) != text || len(text) < 8 {
			t.Errorf("%s: %q", what, text)
		}
	}
	s := Status{Member: Member{Name: nasty, Address: "a:1"}, Err: &ForcedError{By: nasty}}
	c := cluster.Status{
		Group: 1, Waiting: nasty, Members: []cluster.Member{{Name: nasty, Addr: nasty, Zone: nasty,
			Instance: nodeidtest.ID(7)}}, Voters: []cluster.Voter{{Addr: nasty, Instance: nodeidtest.ID(7)}},
	}
	names := instance.InstanceNames{Members: c.Members}
	s.fill(&c, nodeidtest.ID(7), names, func(nodeid.ID) bool { return false })
	s.Health = &Health{Leader: names.Name(nodeidtest.ID(7))}
	member := nodeidtest.ID(8)
	members := membersOf(&query.MemberList{Members: []*query.Member{{Name: nasty, Addr: nasty, Zone: nasty,
		For: nasty, Tier: nasty, Instance: member[:]}}})
	for _, m := range append(members, s.Voters...) {
		if all := m.Name + m.Address + m.Zone + m.For + string(m.Tier); plain.Text(all) != all || all == "" {
			t.Errorf("%q", all)
		}
	}
	if text := s.String(); plain.Lines(text) != text || strings.Count(text, "\n") != 5 {
		t.Errorf("%q", text)
	}
}
