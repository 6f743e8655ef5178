package e2e

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
)

// In TestHostileNames the attacker's instance claims the name of each voter. The group must not
// mistake a running voter for an earlier incarnation of the attacker's instance.
func TestHostileNames(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, []string{"secret"}, func(a *assault) {
		a.join(3)
		time.Sleep(10 * time.Second) // all nodes have the same state
		h := newHostileWith(a.fleet, 0, a.security)
		defer h.Close()
		before := book(a.nodes[0])
		var voters []uint64
		for _, n := range a.nodes {
			voters = append(voters, raftOf(n))
		}
		for round := range 10 {
			leader := a.leader()
			for i, n := range a.nodes {
				record := fmt.Sprintf(`{"instance":"%v","name":%q,"addr":%q,"rules":1}`, h.id.Instance(),
					n.config.Name, h.id.Addr)
				open := lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(4*round + i), TTL: time.Hour,
					Record: []byte(record)}
				to := nodeid.Endpoint{ID: a.nodes[leader].ID(), Addr: address(leader)}
				_ = h.Send(to, transport.Frame{Commands: open.Append(nil)})
			}
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
			for i, n := range a.nodes {
				if i != leader && n.Status().Votes {
					a.net.Reset(host(i))
				}
			}
			time.Sleep(900 * time.Millisecond)
		}
		for i, n := range a.nodes {
			if raft := raftOf(n); raft != voters[i] {
				a.t.Errorf("node %d had raft ID %x and has %x", i, voters[i], raft)
			}
		}
		if after := book(a.nodes[0]); !slices.Equal(before, after) {
			a.t.Errorf("%v voted, and %v vote", before, after)
		}
	})
}
