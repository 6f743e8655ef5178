package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// carried is an Owner that records its calls during a turn. If last is set, the instance ends at
// the call with this name.
type carried struct {
	calls []string
	last  string
}

func (c *carried) Store(*founding.Output)     { c.calls = append(c.calls, "store") }
func (c *carried) Tell([]founding.Event)      { c.calls = append(c.calls, "tell") }
func (c *carried) Question(founding.Question) { c.calls = append(c.calls, "question") }
func (c *carried) Carry(lead.Carry)           { c.calls = append(c.calls, "carry") }
func (c *carried) Task(Task)                  { c.calls = append(c.calls, "task") }
func (c *carried) Gossip(string)              { c.calls = append(c.calls, "gossip") }
func (c *carried) Told(Told)                  { c.calls = append(c.calls, "told") }
func (c *carried) Dismiss(uint64)             { c.calls = append(c.calls, "dismiss") }
func (c *carried) Ended() bool                { return c.last != "" && c.calls[len(c.calls)-1] == c.last }

// TestTheOrderOfATurn checks that decisions are stored first, then reported to the host, and only
// then visible to other instances.
func TestTheOrderOfATurn(t *testing.T) {
	for last, want := range map[string][]string{
		"": {"store", "tell", "task", "told", "dismiss"}, "store": {"store"}, "tell": {"store", "tell"},
	} {
		core, now := member(t, &sight{})
		told := Told{Inquiry: &Inquiry{}}
		core.RemovedPeer(nodeidtest.ID(8), addrOf(8))
		core.acts.Told, core.acts.Dismissed = []Told{told}, 3
		owner := &carried{last: last}
		next := core.Turn(now, 1, founding.Random{Instance: nodeidtest.ID(9), Group: 9, Spread: 9}, 99, 5, owner)
		owner.calls = slices.DeleteFunc(owner.calls, func(call string) bool {
			return call == "question" ||
				call == "gossip"
		})
		if !slices.Equal(owner.calls, want) {
			t.Errorf("ending after %q: %q, want %q", last, owner.calls, want)
		}
		if (next > now) != (last == "") || next > now+time.Minute {
			t.Errorf("ending after %q: the next turn is due after %v", last, next-now)
		}
	}
}
