package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// hostile is a member that is admitted to the group and sends messages that no correct instance
// sends. It consists only of a port.
type hostile struct {
	*transport.Port
	f     *fleet
	id    transport.Self
	heard atomic.Int64 // bytes of commands; 0 unless an instance believes that it leads

	onReplies func([]byte) // may block; must be set while no replies arrive
	answer    []byte       // answer to every Found request; nil means garbage
}

const hostileInstance = 0x666

// newHostile connects to the group as an additional instance. If raft is not zero, the instance
// claims that raft ID.
func newHostile(f *fleet, raft uint64) *hostile { return newHostileWith(f, raft, f.security()) }

// newHostileWith is like newHostile, with TLS. A nil security means plain text.
func newHostileWith(f *fleet, raft uint64, security transport.Security) *hostile {
	f.t.Helper()
	n := f.nodes[f.leader()]
	h := &hostile{f: f, id: transport.Self{
		Key: nodeidtest.Key(hostileInstance), Group: n.Replica().Group, Raft: raft, Addr: "10.0.0.66:7947",
	}}
	l, err := f.net.Listen(h.id.Addr)
	if err != nil {
		f.t.Fatal(err)
	}
	h.Port, err = transport.New(transport.Config{
		Cluster: n.config.Cluster, Self: h.id, Listener: l, Dial: f.net.Dialer("10.0.0.66"), Handler: h, TLS: security,
		Services: transport.Services{
			List:      []transport.Service{{Desc: &query.Cluster_ServiceDesc, Impl: hostileAnswers{h: h}}},
			Intercept: (&queries.Guard{Started: func() bool { return true }}).Intercept,
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// The methods below implement transport.Handler.
func (h *hostile) Frame(_ transport.Identity, f transport.Frame) {
	h.heard.Add(int64(len(f.Commands)))
	if h.onReplies != nil && len(f.Replies) > 0 {
		h.onReplies(f.Replies)
	}
}
func (h *hostile) Down(transport.Identity, error) {}

type hostileAnswers struct {
	query.UnimplementedClusterServer
	h *hostile
}

func (a hostileAnswers) Found(context.Context, *query.FoundRequest) (*query.FoundAnswer, error) {
	if a.h.answer != nil {
		return &query.FoundAnswer{Answer: a.h.answer}, nil
	}
	return &query.FoundAnswer{Answer: []byte(strings.Repeat("\xff", 1000))}, nil
}

func (a hostileAnswers) VoterStatus(context.Context, *query.VoterStatusRequest) (*query.VoterStatusAnswer, error) {
	return &query.VoterStatusAnswer{Leader: []byte("short"), Status: &query.VoterStatus{MayStop: true, AllLeaving: true,
		Remarks: make([]string, 1000)}}, nil
}

func (h *hostile) MaySendSnapshot(transport.Identity, *raftpb.Message) error {
	return errors.New("it takes none")
}
func (h *hostile) Snapshot(transport.Identity, *raftpb.Message) error { return nil }

// say sends a frame to every node. If the previous frame has ended the link, say dials a new link.
func (h *hostile) say(frame transport.Frame) {
	for i, n := range h.f.nodes {
		_ = h.Send(nodeid.Endpoint{ID: n.ID(), Addr: address(i)}, frame)
	}
	synctest.Wait()
}

func (h *hostile) commands(all ...lockfsm.Command) {
	var b []byte
	for _, c := range all {
		b = c.Append(b)
	}
	h.say(transport.Frame{Commands: b})
}

func (h *hostile) sessions() (all []lockfsm.SessionID) {
	for _, n := range h.f.nodes {
		all = append(all, n.Client.Status().Session)
	}
	return all
}

func nonce(i int) (n lockfsm.Nonce) {
	binary.LittleEndian.PutUint64(n[:], uint64(i)+1)
	n[15] = 0x66
	return n
}

func uvarints(vs ...uint64) (b []byte) {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func sized(body []byte) []byte { return append(uvarints(uint64(len(body))), body...) }

// attacks returns the attacks of the hostile member by name. No attack may cost the leader its
// leadership or a holder its lock.
func attacks() map[string]func(h *hostile) {
	return map[string]func(h *hostile){
		"thousands of sessions": func(h *hostile) {
			for i := range 500 {
				h.commands(lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce(i), TTL: math.MaxInt64,
					Record: make([]byte, lockfsm.MaxRecordBytes)})
			}
		},
		"others' sessions": func(h *hostile) {
			for _, id := range h.sessions() {
				for _, epoch := range []lockfsm.Epoch{0, 1, 2, 1 << 40, math.MaxUint64} {
					h.commands(lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: epoch, Number: 1,
						Nonce: nonce(1)})
					for _, kind := range []lockfsm.Kind{lockfsm.Release, lockfsm.Cancel, lockfsm.Leaving,
						lockfsm.Close, lockfsm.Acquire} {
						h.commands(lockfsm.Command{Kind: kind, Session: id, Epoch: epoch, Number: 1, Key: "k"})
					}
					h.say(transport.Frame{Renewals: uvarints(uint64(id), uint64(epoch), math.MaxUint64)})
				}
			}
		},
		"the leader's own commands": func(h *hostile) {
			for _, id := range h.sessions() {
				for _, kind := range []lockfsm.Kind{lockfsm.Stamp, lockfsm.Born, lockfsm.EndGrace, lockfsm.Raise,
					lockfsm.Expire} {
					term := h.f.nodes[0].Status().Term
					h.commands(lockfsm.Command{Kind: kind, Session: id, Term: term, Version: 99,
						WallUnixMS: math.MaxInt64})
				}
			}
		},
		"absurd sizes": func(h *hostile) {
			live := make([]lockfsm.Range, 100_000)
			for i := range live {
				live[i] = lockfsm.Range{First: lockfsm.Number(2*i + 1), Last: lockfsm.Number(2*i + 1)}
			}
			for range 5 {
				h.commands(lockfsm.Command{Kind: lockfsm.Attach, Session: 7, Epoch: 1, Number: 1 << 40,
					Nonce: nonce(1), Live: live})
				h.commands(lockfsm.Command{Kind: lockfsm.Attach, Session: h.sessions()[0], Epoch: 9,
					Number: lockfsm.MaxNumber, Nonce: nonce(1),
					Live: []lockfsm.Range{{First: 1, Last: lockfsm.MaxNumber - 1}}})
				h.commands(lockfsm.Command{Kind: lockfsm.Acquire, Session: 7, Epoch: 1, Number: lockfsm.MaxNumber,
					Key: strings.Repeat("k", 1<<20)})
			}
			h.say(transport.Frame{Commands: make([]byte, 9<<20)})
			h.say(transport.Frame{Renewals: make([]byte, 9<<20)})
			h.say(transport.Frame{Replies: make([]byte, 9<<20)})
		},
		"replies of an instance that does not lead": func(h *hostile) {
			self := h.id.Instance()
			lure := append(uvarints(8, math.MaxUint64), self[:]...)
			lure = append(append(lure, uvarints(uint64(len(h.id.Addr)))...), h.id.Addr...)
			h.say(transport.Frame{Replies: sized(lure)})
			h.say(transport.Frame{Replies: sized(uvarints(8, 0, 0, 0))})
			for i, id := range h.sessions() {
				for epoch := range uint64(5) {
					for _, kind := range []uint64{2, 3, 5, 6, 7, 9} {
						h.say(transport.Frame{Replies: sized(uvarints(kind, uint64(id), epoch, 2, 2, uint64(i), 1))})
					}
				}
			}
		},
		"gossip": func(h *hostile) {
			for i := range 2000 {
				_ = h.Gossip().WriteTo([]byte(strings.Repeat(fmt.Sprint(i), i%9000)), address(i%3))
			}
			for i := range 30 {
				ctx, cancel := context.WithTimeout(h.f.t.Context(), time.Second)
				if conn, err := h.Gossip().DialStream(ctx, address(i%3)); err == nil {
					_, _ = conn.Write([]byte(strings.Repeat("\xff", 10_000)))
					_ = conn.Close()
				}
				_, _, _ = queries.Found(ctx, h.Port.To(address(i%3), nodeid.ID{}),
					[]byte(strings.Repeat("\x01", i*1000)))
				cancel()
			}
		},
	}
}

// unharmed runs an attack on a working group. No holder may lose its lock, and the leader must
// remain.
func unharmed(t *testing.T, raft func(f *fleet) uint64, attack func(h *hostile)) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		var locks []*mortise.Lock
		for i := range f.nodes {
			locks = append(locks, f.lock(i, fmt.Sprint("held by ", i)))
		}
		before, ours := f.nodes[f.leader()].Status(), f.sessions()
		h := newHostile(f, raft(f))
		attack(h)
		for i, n := range f.nodes { // before the locks can expire
			if r := n.Replica(); r == nil {
				t.Fatalf("node %d does not vote any more", i)
			} else if s := r.Keeper.Status(); s.Sessions > ours+256 || s.Attachments > ours {
				t.Errorf("node %d keeps %+v", i, s)
			}
		}
		time.Sleep(20 * time.Second) // ten leases
		for i, l := range locks {
			if err := l.Err(); err != nil {
				t.Errorf("node %d has lost its lock: %v", i, err)
			}
			if err := f.nodes[i].Err(); err != nil {
				t.Errorf("node %d has failed: %v", i, err)
			}
		}
		if after := f.nodes[f.leader()].Status(); after.Term != before.Term || after.Leader != before.Leader {
			t.Errorf("%s led in term %d, now %s leads in term %d", before.Leader, before.Term, after.Leader, after.Term)
		}
		if n := h.heard.Load(); n != 0 {
			t.Errorf("it was sent %d bytes of commands, as if it led", n)
		}
		if n := len(f.nodes[0].Cluster().Members()); n != 3 {
			t.Errorf("gossip sees %d members", n)
		}
		for i, n := range f.nodes {
			s := n.Replica().Keeper.Status()
			if s.Sessions > ours+256 || s.Attachments > ours || s.Opens > 0 || s.Peers > 5 {
				t.Errorf("node %d keeps %+v", i, s)
			}
			unlock(t, locks[i])
			unlock(t, f.lock(i, "another"))
		}
		_ = h.Close()
		f.nothingLeft()
	})
}

func TestHostileMember(t *testing.T) {
	slow.UnderRace(t)
	for name, attack := range attacks() {
		t.Run(name, func(t *testing.T) { unharmed(t, func(*fleet) uint64 { return 0 }, attack) })
	}
}

// TestHostileRaftMessages checks that raft receives a message only if an instance of the address
// book has sent it, whatever raft ID and sender the message claims.
func TestHostileRaftMessages(t *testing.T) {
	slow.UnderRace(t)
	for name, raft := range map[string]func(f *fleet) uint64{
		"as a voter":    func(f *fleet) uint64 { return f.nodes[f.follower()].Replica().ID },
		"as the leader": func(f *fleet) uint64 { return f.nodes[f.leader()].Replica().ID },
		"as no replica": func(*fleet) uint64 { return 0x777 },
	} {
		t.Run(name, func(t *testing.T) {
			unharmed(t, raft, func(h *hostile) {
				var ids []uint64
				for _, n := range h.f.nodes {
					ids = append(ids, n.Replica().ID)
				}
				for kind := range raftpb.MessageType_name {
					for i, id := range ids {
						for _, from := range []uint64{h.id.Raft, id, 1} {
							m := &raftpb.Message{
								Type: raftpb.MessageType(kind).Enum(), From: &from, To: &id,
								Term: new(uint64(1 << 40)), LogTerm: new(uint64(1 << 40)),
								Index: new(uint64(1 << 50)), Commit: new(uint64(math.MaxUint64)),
								Entries: []*raftpb.Entry{{Index: new(uint64(1<<50 + 1)), Term: new(uint64(1 << 40)),
									Data: []byte("x")}},
							}
							to := nodeid.Endpoint{ID: h.f.nodes[i].ID(), Addr: address(i)}
							_ = h.Send(to, transport.Frame{Raft: []*raftpb.Message{m}})
							_ = h.SendSnapshot(h.f.t.Context(), to, &raftpb.Message{
								Type: raftpb.MsgSnap.Enum(), From: m.From, To: m.To, Term: m.Term,
								Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: m.Index,
									Term: m.Term}, Data: []byte("x")},
							})
						}
					}
				}
				synctest.Wait()
			})
		})
	}
}

// TestHostileSnapshots checks that a snapshot from an instance that does not own the leader's raft
// ID is refused at its first chunk.
func TestHostileSnapshots(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		mine := f.lock(0, "k")
		leader := f.nodes[f.leader()].Replica()
		h := newHostile(f, leader.ID)
		defer h.Close()
		for i, n := range f.nodes {
			r := n.Replica()
			if r == leader {
				continue
			}
			m := &raftpb.Message{
				Type: raftpb.MsgSnap.Enum(), From: new(leader.ID), To: new(r.ID), Term: new(uint64(1 << 40)),
				Snapshot: &raftpb.Snapshot{Data: make([]byte, 8<<20), Metadata: &raftpb.SnapshotMetadata{
					Index: new(uint64(1 << 40)), Term: new(uint64(1 << 40)),
					ConfState: &raftpb.ConfState{Voters: []uint64{leader.ID, r.ID}}}},
			}
			began := time.Now()
			err := h.SendSnapshot(t.Context(), nodeid.Endpoint{ID: n.ID(), Addr: address(i)}, m)
			if err == nil || !strings.Contains(err.Error(), "names another instance for the raft ID") ||
				time.Since(began) > time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		time.Sleep(time.Minute)
		if err := mine.Err(); err != nil {
			t.Error(err)
		}
		unlock(t, mine)
	})
}

// In TestHostileGhosts a process with the secret invents members. Gossip must limit their number.
func TestHostileGhosts(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		h := newHostile(f, 0)
		defer h.Close()
		for i := range 6000 {
			for at := range f.nodes {
				_ = h.Gossip().WriteTo(ghost(f.nodes[0].config.Cluster, i), address(at))
			}
			if i%50 == 49 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		for i, n := range f.nodes {
			if seen := len(n.Cluster().Members()); seen < 1000 || seen > 4097 {
				t.Errorf("node %d sees %d members", i, seen)
			}
			unlock(t, f.lock(i, "k"))
		}
		time.Sleep(2 * time.Minute)
		for i := range f.nodes {
			unlock(t, f.lock(i, "k"))
		}
	})
}

func ghost(label string, i int) []byte {
	name := fmt.Sprint("ghost-", i)
	at := attack.Member{Name: name, IP: []byte{10, 66, byte(i / 250), byte(i % 250)}, Port: 7947}
	return attack.Alive(label, at, 1, attack.Meta{
		Instance: nodeidtest.ID(uint64(i) + 1e6), Name: name, Addr: fmt.Sprintf("10.66.%d.%d:7947", i/250, i%250),
	})
}
