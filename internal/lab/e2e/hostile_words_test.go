package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
)

func book(n *node) (all []string) {
	for _, v := range n.Status().Voters {
		all = append(all, fmt.Sprint(v.Instance, " at ", v.Address))
	}
	slices.Sort(all)
	return all
}

// unmoved runs an attack. It fails the test if an instance reports other voters after the attack
// than before.
func (a *assault) unmoved(least time.Duration, do func()) {
	a.t.Helper()
	time.Sleep(10 * time.Second) // all nodes have the same state
	var before [][]string
	for _, n := range a.nodes {
		before = append(before, book(n))
	}
	a.attack(least, do)
	for i, n := range a.nodes {
		if after := book(n); !slices.Equal(after, before[i]) {
			a.t.Errorf("node %d believed that %v vote, and believes %v", i, before[i], after)
		}
	}
}

// In TestHostileHearsay an attacker claims to be the only voter, asks each instance to start a
// replica, and answers every request as the leader. The group must still replace a crashed voter.
func TestHostileHearsay(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, []string{"secret"}, func(a *assault) {
		a.join(3)
		held := []*mortise.Lock{a.lock(3, "of the one that does not vote"), a.lock(a.follower(), "of a voter")}
		h := newHostileWith(a.fleet, 0, a.security)
		defer h.Close()
		group := a.nodes[0].Replica().Group
		me := []attack.Replica{{Raft: 0x666, Instance: h.id.Instance(), Addr: h.id.Addr, Life: 1}}
		h.answer = attack.InstanceInfo("node-9", h.id.Addr, group, 1<<50, me)
		a.unmoved(10*time.Second, func() {
			for i := range a.nodes {
				a.slander(h, i, group, me)
			}
		})
		if n := h.heard.Load(); n != 0 {
			a.t.Errorf("it was sent %d bytes of commands, as if it led", n)
		}
		for _, l := range held {
			if err := l.Err(); err != nil {
				a.t.Error(err)
			}
			unlock(a.t, l)
		}
		a.crash(slices.IndexFunc(a.nodes, func(n *node) bool { return n.Status().Votes && !n.Status().Leading }))
		a.wantVoters(3)
		unlock(a.t, a.lock(3, "k"))
	})
}

// slander sends to one instance all messages that change its view of the configuration.
func (a *assault) slander(h *hostile, at int, group uint64, me []attack.Replica) {
	n := a.nodes[at]
	ask := func(body []byte) {
		ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Second)
		defer cancel()
		if _, _, err := queries.Found(ctx, h.Port.To(address(at), n.ID()), body); err != nil {
			a.t.Logf("node %d: %v", at, err)
		}
	}
	all := me
	for _, v := range n.Status().Voters {
		if id, err := nodeid.Parse(v.Instance); err == nil {
			all = append(all, attack.Replica{Raft: uint64(len(all)), Instance: id, Addr: h.id.Addr, Life: 9})
		}
	}
	for _, index := range []uint64{1, 1 << 20, 1 << 50, 1<<56 - 1, 1 << 60, 1<<64 - 1} {
		for _, voters := range [][]attack.Replica{me, all, nil} {
			ask(attack.Push(n.ID(), group, index, voters))
			ask(attack.Prepare(n.ID(), group, 0x667, 1<<40, index, voters))
			ask(attack.Prepare(n.ID(), group, raftOf(n)+1, 1<<40, index, voters))
		}
	}
	ask(attack.InstanceInfo("node-9", h.id.Addr, group, 1<<50, me))
}

// wantVoters waits until all running instances agree on n voters, and all these voters run.
func (a *assault) wantVoters(n int) {
	a.t.Helper()
	for range 600 {
		voting, books := 0, map[string]bool{}
		for _, node := range a.nodes {
			if node == nil {
				continue
			}
			if node.Status().Votes {
				voting++
			}
			books[fmt.Sprint(book(node))] = true
		}
		if voting == n && len(books) == 1 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	for i, node := range a.nodes {
		if node != nil {
			a.t.Errorf("node %d believes that %v vote", i, book(node))
		}
	}
	a.t.Fatalf("there are no %d voters on which all agree", n)
}

// TestHostileGossip sends gossip in the name of every instance, with another ID, another address,
// another group, and a configuration of the far future.
func TestHostileGossip(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, []string{"secret"}, func(a *assault) {
		a.join(3)
		h := newHostileWith(a.fleet, 0, a.security)
		defer h.Close()
		members := a.gossipMembers(h)
		group := a.nodes[0].Replica().Group
		seconds := slow.Sized(20, 60)
		a.unmoved(time.Duration(seconds)*time.Second, func() {
			rival := attack.Member{Name: "0123456789abcdef01234567", IP: []byte{10, 0, 0, 66}, Port: 7947}
			for round := range uint32(seconds) {
				// This member remains in the lists, because a new packet arrives before it counts
				// as dead.
				for at, n := range a.nodes {
					_ = h.Gossip().WriteTo(attack.Alive(n.config.Cluster, rival, 1+round, attack.Meta{
						Instance: h.id.Instance(), Group: 77, At: 3, Leader: true, Name: "node-9", Addr: h.id.Addr,
					}), address(at))
				}
				for victim, n := range a.nodes {
					for at := range a.nodes {
						for i, m := range []attack.Meta{
							{Instance: h.id.Instance(), Group: group, At: 1 << 50, Leader: true, Name: n.config.Name,
								Addr: h.id.Addr},
							{Instance: n.ID(), Group: group, At: 1 << 50, Name: n.config.Name, Addr: h.id.Addr},
							{Instance: a.nodes[at].ID(), Group: 77, At: 3, Leader: true,
								Name: a.nodes[at].config.Name, Addr: h.id.Addr},
						} {
							packet := attack.Alive(n.config.Cluster, members[victim], 1000+10*round+uint32(i), m)
							_ = h.Gossip().WriteTo(packet, address(at))
						}
					}
				}
				time.Sleep(time.Second)
			}
		})
		if n := h.heard.Load(); n != 0 {
			a.t.Errorf("it was sent %d bytes of commands, as if it led", n)
		}
		if lines := a.log.matching("level=ERROR"); len(lines) != 0 {
			a.t.Errorf("false alarms: %v", lines)
		}
		for i, n := range a.nodes {
			if s := n.Status(); s.Waiting != "" {
				a.t.Errorf("node %d waits for %q", i, s.Waiting)
			}
		}
	})
}

func (a *assault) gossipMembers(h *hostile) []attack.Member {
	a.t.Helper()
	time.Sleep(5 * time.Second)
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Second)
	defer cancel()
	conn, err := h.Gossip().DialStream(ctx, address(0))
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(attack.Exchange(a.nodes[0].config.Cluster)); err != nil {
		a.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	answer, _ := io.ReadAll(conn)
	members := attack.Members(answer)
	if len(members) != len(a.nodes) {
		a.t.Fatalf("gossip names %v of %d instances in %d bytes", members, len(a.nodes), len(answer))
	}
	slices.SortFunc(members, func(x, y attack.Member) int { return bytes.Compare(x.IP, y.IP) })
	return members
}

// In TestHostileEnds an instance that claims the raft ID of another instance reports that it has
// retired. The receivers must apply the report only to the reporting instance.
func TestHostileEnds(t *testing.T) {
	slow.UnderRace(t)
	for name, victim := range map[string]func(f *fleet) int{"of a voter": (*fleet).follower,
		"of the leader": (*fleet).leader} {
		t.Run(name, func(t *testing.T) {
			unharmed(t, func(f *fleet) uint64 { return f.nodes[victim(f)].Replica().ID }, func(h *hostile) {
				for range 5 {
					h.say(transport.Frame{Retired: true})
					for i := range h.f.nodes {
						h.f.net.Reset("10.0.0.66")
						time.Sleep(200 * time.Millisecond) // the pause between two dials
						_ = h.Send(nodeid.Endpoint{ID: h.f.nodes[i].ID(), Addr: address(i)},
							transport.Frame{Retired: true})
						synctest.Wait()
					}
				}
			})
		})
	}
}

// TestHostileRecords checks that a session is not opened if its record names an instance or an
// address that its connection does not prove.
func TestHostileRecords(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, []string{"secret"}, func(a *assault) {
		h := newHostileWith(a.fleet, 0, a.security)
		defer h.Close()
		leader := a.nodes[a.leader()]
		victim := a.nodes[a.follower()]
		before := leader.Replica().Keeper.Status().Sessions
		a.unmoved(10*time.Second, func() {
			for i, record := range []string{
				fmt.Sprintf(`{"instance":"%v","name":"node-9","addr":%q,"rules":1}`, victim.ID(), h.id.Addr),
				fmt.Sprintf(`{"instance":"%v","name":"node-9","addr":%q,"rules":1}`, h.id.Instance(), victim.Address),
				fmt.Sprintf(`{"instance":"%v","name":"node-9","addr":%q,"rules":1}`, victim.ID(), victim.Address),
				fmt.Sprintf(`{"instance":"%v","name":"node-9","addr":"","rules":1}`, nodeidtest.ID(5)),
				fmt.Sprintf(`{"instance":"%s","name":"node-9","rules":1}`, strings.Repeat("f", 31)),
			} {
				h.commands(lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(i), TTL: time.Hour, Record: []byte(record)})
				time.Sleep(300 * time.Millisecond)
				if after := leader.Replica().Keeper.Status().Sessions; after != before {
					a.t.Errorf("a session was opened by the record %s", record)
				}
			}
		})
	})
}
