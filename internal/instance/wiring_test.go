package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// row is one row of the table of the wiring: what an event calls of the parts, in this order. The
// table has a row for each event of the list sources, and each call of parts.go occurs in it.
type row struct {
	event string
	given string
	do    func(r *rig) error
	want  string // one call a line; "= error" if the event fails
}

// calls returns the calls of each event behind the other: an event "Down" of own, second and third
// for "each.Down".
func calls(lines ...string) string {
	var all []string
	for _, l := range lines {
		what, each := strings.CutPrefix(l, "each.")
		if !each {
			all = append(all, l)
			continue
		}
		for _, c := range [...]string{"own", "second", "third"} {
			all = append(all, c+"."+what)
		}
	}
	return strings.Join(all, "\n")
}

// bound are the calls of each Rebind of all sessions.
func bound(targets string) string {
	return calls("own.Rebind(record, "+targets+")", "second.Rebind(record of an own session, "+targets+")",
		"third.Rebind(record of an own session, "+targets+")")
}

// leaderless is what the hooks are told when the leader was known only by the replica that ends.
const leaderless = "hook: {State:none Leader: Session: Term:0 Took:0s Left:0s}"

var released = calls("each.Rebind(no record, )")

func from(i uint64) transport.Identity {
	return transport.Identity{Instance: nodeidtest.Key(i).ID(), Life: 7, Raft: i, Addr: fmt.Sprint("host", i),
		Peer: capability.Peer{Tier: capability.Root}}
}

func message(from, to uint64) []*raftpb.Message {
	return []*raftpb.Message{{From: proto.Uint64(from), To: proto.Uint64(to)}}
}

func frame(f transport.Frame) func(*rig) error {
	return func(r *rig) error {
		inbound{r.n}.Frame(from(2), f)
		return nil
	}
}

// on returns the event do of a rig that given has prepared.
func on(given func(*rig), do func(*rig) error) func(*rig) error {
	return func(r *rig) error {
		given(r)
		synctest.Wait()
		r.lines, r.told = nil, nil
		return do(r)
	}
}

func voting(do func(*rig) error) func(*rig) error { return on((*rig).withReplica, do) }
func led(do func(*rig) error) func(*rig) error    { return on((*rig).leading, do) }

// of makes an event of a call without an error.
func of(do func(*rig)) func(*rig) error {
	return func(r *rig) error {
		do(r)
		return nil
	}
}

func host(do func(life)) func(*rig) error { return of(func(r *rig) { do(life{r.n}) }) }

func charter(all []cluster.Voter) founding.Charter {
	return founding.Charter{Group: rigGroup, FoundedUnixMS: 1, Rules: 1, Voters: all,
		Settings: founding.Settings{Voters: 3, SessionTTL: time.Second}}
}

func frameRows() []row {
	one := message(2, 1)
	all := transport.Frame{Renewals: []byte("r"), Commands: []byte("c"), Replies: []byte("a"), Raft: one, Retired: true}
	return []row{
		{"Frame.Raft", "no replica", frame(transport.Frame{Raft: one}), ""},
		{"Frame.Raft", "from its replica", voting(frame(transport.Frame{Raft: one})), calls("log.Step(from 2)")},
		{"Frame.Raft", "under the raft ID of another instance", voting(of(func(r *rig) {
			thief := from(4)
			thief.Raft = 2
			inbound{r.n}.Frame(thief, transport.Frame{Raft: one})
		})), ""},
		{"Frame.Raft", "of a removed replica", voting(of(func(r *rig) {
			inbound{r.n}.Frame(from(4), transport.Frame{Raft: one})
		})), calls("cluster.RemovedPeer(four, host4)")},
		{"Frame.Raft", "from a member", voting(of(func(r *rig) {
			member := from(2)
			member.Peer.Tier = capability.Member
			inbound{r.n}.Frame(member, transport.Frame{Raft: one})
		})), ""},
		{"Frame.Duplicate", "", voting(frame(transport.Frame{Raft: one, Duplicate: true})),
			calls("log.StepDuplicate(from 2)")},
		{"Frame.Retired", "no replica", frame(transport.Frame{Retired: true}), ""},
		{"Frame.Retired", "a replica", voting(frame(transport.Frame{Retired: true})),
			calls("log.PeerLost(2)", "cluster.PeerLost(two)")},
		{"Frame.Retired", "under the raft ID of another instance", voting(of(func(r *rig) {
			liar := from(3)
			liar.Raft = 2
			inbound{r.n}.Frame(liar, transport.Frame{Retired: true})
		})), calls("log.PeerLost(3)", "cluster.PeerLost(three)")},
		{"Frame.Renewals", "no replica", frame(transport.Frame{Renewals: []byte("r")}), calls("port.Send(two : no voter)")},
		{"Frame.Renewals", "a replica", voting(frame(transport.Frame{Renewals: []byte("r")})),
			calls("keeper.ReceiveFrom(two of start 7, all rights, r, )")},
		{"Frame.Commands", "no replica", frame(transport.Frame{Commands: []byte("c")}), calls("port.Send(two : no voter)")},
		{"Frame.Commands", "limited rights", voting(of(func(r *rig) {
			limited := from(2)
			limited.Peer.Capability = &capability.Capability{}
			inbound{r.n}.Frame(limited, transport.Frame{Commands: []byte("c")})
		})), calls("keeper.ReceiveFrom(two of start 7, rights, , c)")},
		{"Frame.Replies", "no replica", frame(transport.Frame{Replies: []byte("a")}), calls("each.Receive(two, a)")},
		{"Frame.Replies", "a replica", voting(frame(transport.Frame{Replies: []byte("a")})), calls("each.Receive(two, a)")},
		{"Frame.Replies", "all in one frame", voting(frame(all)), calls("log.Step(from 2)", "log.PeerLost(2)",
			"cluster.PeerLost(two)", "keeper.ReceiveFrom(two of start 7, all rights, r, c)", "each.Receive(two, a)")},
		{"Frame.Replies", "a peer that has proved nothing", voting(of(func(r *rig) {
			inbound{r.n}.Frame(transport.Identity{Instance: nodeidtest.Key(2).ID(), Life: 7, Raft: 2}, all)
		})), ""},

		{"Handler.Down", "no replica", of(func(r *rig) { inbound{r.n}.Down(from(2), nil) }),
			calls("each.Down(two)", "cluster.Look()")},
		{"Handler.Down", "a replica", voting(of(func(r *rig) { inbound{r.n}.Down(from(2), nil) })),
			calls("keeper.Down(two)", "log.PeerLost(2)", "each.Down(two)", "cluster.Look()")},
		{"Handler.MaySendSnapshot", "no replica", func(r *rig) error {
			return inbound{r.n}.MaySendSnapshot(from(2), one[0])
		}, "= error"},
		{"Handler.MaySendSnapshot", "", voting(func(r *rig) error { return inbound{r.n}.MaySendSnapshot(from(2), one[0]) }),
			""},
		{"Handler.Snapshot", "no replica", func(r *rig) error { return inbound{r.n}.Snapshot(from(2), one[0]) }, "= error"},
		{"Handler.Snapshot", "from its replica", voting(func(r *rig) error { return inbound{r.n}.Snapshot(from(2), one[0]) }),
			calls("log.Step(from 2)")},
		{"Handler.Snapshot", "from no replica", voting(func(r *rig) error { return inbound{r.n}.Snapshot(from(4), one[0]) }),
			"= error"},
	}
}

func hostRows() []row {
	const stopped = "log.Close()\nkeeper.Close()"
	sole := places()[:1]
	return []row{
		{"Host.Bound", "no vote", host(func(l life) { l.Bound(charter(places()[1:]), 0) }),
			calls("port.Prefer(host2 host3)", "port.Identify(self at host1, group 7, raft 0)")},
		{"Host.Bound", "the only voter", host(func(l life) { l.Bound(charter(sole), rigRaft) }),
			calls("port.Prefer()", "log.Start(1, empty false)", "port.Identify(self at host1, group 7, raft 1)",
				"log.Campaign()")},
		{"Host.Bound", "one of three voters", host(func(l life) { l.Bound(charter(places()), rigRaft) }),
			calls("port.Prefer(host2 host3)", "log.Start(1, empty false)", "port.Identify(self at host1, group 7, raft 1)")},
		{"Host.Bound", "its log has ended", on(func(r *rig) {
			r.withDir()
			r.withLog(true)
		}, host(func(l life) { l.Bound(charter(places()), rigRaft) })),
			calls("port.Prefer(host2 host3)", "port.Identify(self at host1, group 7, raft 0)", "cluster.Retired(1)",
				"= unread")},
		{"Host.Bound", "its log is open, as a hanging call leaves it", on(func(r *rig) {
			r.withDir()
			_, _ = r.n.dir.Log(rigGroup, rigRaft)
		}, host(func(l life) { l.Bound(charter(places()), rigRaft) })),
			calls("port.Prefer(host2 host3)", "port.Identify(self at host1, group 7, raft 0)", "= unread")},
		{"Host.Bound", "the state cannot be made, in memory", host(func(l life) {
			l.Bound(founding.Charter{Group: rigGroup, Voters: sole}, rigRaft)
		}), calls("port.Prefer()", "second.Close()", "third.Close()", "own.Close()", "cluster.Close()", "port.Close()",
			"= failed")},
		{"Host.AllBound", "no replica", host(func(l life) { l.AllBound(rigGroup) }), ""},
		{"Host.AllBound", "a replica", voting(host(func(l life) { l.AllBound(rigGroup) })), calls("keeper.AllBound()")},
		{"Host.Member", "no vote", host(func(l life) { l.Member(rigGroup, places()) }),
			calls("port.Identify(self at host1, group 7, raft 0)", "port.Prefer(host2 host3)", bound("self two three"))},
		{"Host.Member", "a run directory", on((*rig).withRunDir, host(func(l life) { l.Member(rigGroup, places()) })),
			calls("port.Identify(self at host1, group 7, raft 0)", "port.Prefer(host2 host3)", "own.Follows(four)",
				bound("self two three"))},
		{"Host.Member", "a vote", voting(host(func(l life) { l.Member(rigGroup, places()) })),
			calls("port.Identify(self at host1, group 7, raft 1)", "port.Prefer(host2 host3)", bound("self two three"))},
		{"Host.Voters", "no replica", host(func(l life) { l.Voters(places()[1:]) }),
			calls("port.Prefer(host2 host3)", "each.SetTargets(two three)")},
		{"Host.Voters", "a replica", voting(host(func(l life) { l.Voters(places()) })),
			calls("port.Prefer(host2 host3)", "each.SetTargets(self two three)", "keeper.Role(5, false, two host2)")},
		{"Host.Restart", "a replica", voting(host(func(l life) { l.Restart(nodeidtest.Key(4), errors.New("why")) })),
			calls("port.Prefer()", released, stopped, "port.Identify(four at host1, group 0, raft 0)")},
		{"Host.Restart", "no replica", host(func(l life) { l.Restart(nodeidtest.Key(4), errors.New("why")) }),
			calls("port.Prefer()", released, "port.Identify(four at host1, group 0, raft 0)")},
		{"Host.Restart", "its log is in a directory", on(func(r *rig) {
			r.withDir()
			r.withLog(false)
		}, host(func(l life) { l.Restart(nodeidtest.Key(4), errors.New("why")) })),
			calls("port.Prefer()", released, "port.Identify(four at host1, group 0, raft 0)")},
		{"Host.Voters", "a log is in its directory", on(func(r *rig) {
			r.withDir()
			r.withLog(false)
		}, host(func(l life) { l.Voters(places()[1:]) })),
			calls("port.Prefer(host2 host3)", "each.SetTargets(two three)", "= a log that can be used")},
		{"Host.Restart", "its log could not be read", on(func(r *rig) { r.n.unread.Store(&errNoVoter) },
			host(func(l life) { l.Restart(nodeidtest.Key(4), errors.New("why")) })),
			calls("port.Prefer()", released, "port.Identify(four at host1, group 0, raft 0)")},
		{"Host.Member", "a vote, after a fault of the disk and of the log", voting(host(func(l life) {
			l.n.disk.lasts = &DiskFault{State: DiskFailed}
			l.n.unread.Store(&errNoVoter)
			l.Member(rigGroup, places())
		})), calls("port.Identify(self at host1, group 7, raft 1)", "port.Prefer(host2 host3)", bound("self two three"))},
		{"Host.Prepared", "no replica", host(func(l life) { l.Prepared(rigGroup, rigRaft) }),
			calls("log.Start(1, empty false)", "port.Identify(self at host1, group 7, raft 1)")},
		{"Host.Prepared", "an earlier replica", voting(host(func(l life) { l.Prepared(rigGroup, 9) })),
			calls(stopped, "port.Identify(self at host1, group 7, raft 0)", "cluster.HasLeader(false)",
				"log.Start(9, empty false)",
				"port.Identify(self at host1, group 7, raft 9)", leaderless)},
		{"Host.Prepared", "its log has ended", on(func(r *rig) {
			r.withDir()
			r.withLog(true)
		}, host(func(l life) { l.Prepared(rigGroup, rigRaft) })), calls("cluster.Retired(1)")},
		{"Host.Prepared", "its log is there", on(func(r *rig) {
			r.withDir()
			r.withLog(false)
		}, host(func(l life) { l.Prepared(rigGroup, rigRaft) })),
			calls("log.Start(1, empty false)", "port.Identify(self at host1, group 7, raft 1)", "= a log that can be used")},
		{"Host.Removed", "the replica runs", voting(host(func(l life) { l.Removed(rigRaft) })), ""},
		{"Host.Removed", "another replica runs", voting(host(func(l life) { l.Removed(9) })), calls("cluster.Retired(9)")},
		{"Host.Removed", "no replica", host(func(l life) { l.Removed(rigRaft) }), calls("cluster.Retired(1)")},
		{"Host.Dismissed", "the replica runs", voting(host(func(l life) { l.Dismissed(rigRaft) })),
			calls(stopped, "port.Identify(self at host1, group 7, raft 0)", "cluster.HasLeader(false)", "cluster.Retired(1)",
				leaderless)},
		{"Host.Dismissed", "another replica runs", voting(host(func(l life) { l.Dismissed(9) })),
			calls("cluster.Retired(9)")},
		{"Host.Carry", "no replica", host(func(l life) { l.Carry(5, voters.Step{Kind: voters.Change}, cluster.Voter{}) }),
			""},
		{"Host.Carry", "a change", led(host(func(l life) {
			l.Carry(5, voters.Step{Kind: voters.Change, Remove: []uint64{2}}, cluster.Voter{})
		})), calls("log.Change(5, add 0, promote [], demote [], remove [2])")},
		{"Host.Carry", "an exchange", led(host(func(l life) {
			l.Carry(5, voters.Step{Kind: voters.Change, Promote: []uint64{4}, Demote: []uint64{3}}, cluster.Voter{})
		})), calls("log.Change(5, add 0, promote [4], demote [3], remove [])")},
		{"Host.Carry", "a new replica", led(host(func(l life) {
			l.Carry(5, voters.Step{Kind: voters.AddLearner, ID: 4}, cluster.Voter{Raft: 9})
		})), calls("log.Change(5, add 4, promote [], demote [], remove [])")},
		{"Host.Carry", "nothing", led(host(func(l life) {
			l.Carry(5, voters.Step{Kind: voters.Prepare, ID: 3}, cluster.Voter{})
		})), ""},
		{"Host.Carry", "a transfer", led(host(func(l life) {
			l.Carry(5, voters.Step{Kind: voters.Transfer, ID: 3}, cluster.Voter{})
		})), calls("log.Transfer(3, no limit)")},
		{"Host.Facts", "a replica", voting(host(func(l life) { l.Facts() })), ""},
		{"Host.Guide", "", voting(host(func(l life) { l.Guide() })), ""},
		{"Host.Leader", "", voting(of(func(r *rig) {
			if id, addr := (life{r.n}).Leader(); id != nodeidtest.Key(2).ID() || addr != "host2" {
				r.note("wrong: %s, %s", id, addr)
			}
		})), ""},
		{"Host.Refused", "a replica", voting(host(func(l life) { l.Refused(errors.New("copied")) })), calls(released,
			stopped, "port.Identify(self at host1, group 0, raft 0)", "second.Close()", "third.Close()", "own.Close()",
			"cluster.Close()", "port.Close()", "= failed")},
		{"Host.Unsaved", "a replica", voting(host(func(l life) { l.Unsaved(cluster.ErrUnsaved) })),
			calls(stopped, "port.Identify(self at host1, group 7, raft 0)", "= its disk: failed")},
		{"Host.Unsaved", "no replica", host(func(l life) { l.Unsaved(cluster.ErrUnsaved) }), "= its disk: failed"},
	}
}

func replicaRows() []row {
	const retired = "log.Close()\nkeeper.Close()\nport.Send(two host2: retired)\nport.Send(three host3: retired)\n" +
		"port.Identify(self at host1, group 7, raft 0)\ncluster.HasLeader(false)"
	self := nodeidtest.Key(1).ID()
	fails := func(err error) func(*rig) error { return of(func(r *rig) { r.voted().Retired(err) }) }
	unsent := func(do func(*rig) error) func(*rig) error {
		return voting(func(r *rig) error {
			r.sendFail = transport.ErrFull
			return do(r)
		})
	}
	both := append(message(1, 2), message(1, 3)...)
	return []row{
		{"replica.RoleChanged", "", voting(of(func(r *rig) { r.voted().RoleChanged() })),
			calls("cluster.HasLeader(true)")},
		{"replica.Configured", "", voting(of(func(r *rig) { r.voted().Configured() })), ""},
		{"replica.Answering", "", voting(of(func(r *rig) { r.voted().Answering(&lockfsm.Result{}) })), ""},
		{"replica.Born", "", voting(of(func(r *rig) { r.voted().Born() })), ""},
		{"replica.Retired", "in memory", voting(fails(raftlog.ErrCorrupt)), calls(retired, "cluster.Retired(1)", leaderless)},
		{"replica.Retired", "its disk has failed", voting(of(func(r *rig) {
			r.withDir()
			r.voted().Retired(raftlog.ErrStorage)
		})), calls(retired, leaderless, "= its disk: failed")},
		{"replica.Retired", "its directory was removed", voting(of(func(r *rig) {
			r.withDir()
			r.voted().Retired(fmt.Errorf("%w: %w", raftlog.ErrStorage, storage.ErrLost))
		})), calls(retired, leaderless, "= its disk: removed")},
		{"replica.Retired", "its disk hangs", voting(of(func(r *rig) {
			r.withDir()
			r.n.disk.began[diskSaves].Store(1)
			r.voted().Retired(raftlog.ErrHung)
		})), calls(retired, leaderless, "= its disk: hung")},
		{"replica.Retired", "its log hangs, and the disk does not", voting(of(func(r *rig) {
			r.withDir()
			r.voted().Retired(raftlog.ErrHung)
		})), calls(retired, leaderless)},
		{"replica.Retired", "its directory went back", voting(of(func(r *rig) {
			r.withDir()
			r.voted().Retired(raftlog.ErrWentBack)
		})), calls(retired, "cluster.WentBack("+raftlog.ErrWentBack.Error()+")", leaderless)},
		{"replica.Retired", "its state is broken", voting(fails(raftlog.ErrBroken)), calls(retired, "second.Close()",
			"third.Close()", "own.Close()", "cluster.Close()", "port.Close()", leaderless, "= failed")},
		{"replica.Retired", "another replica has taken its place", voting(of(func(r *rig) {
			old := r.voted()
			r.n.replica.Store(nil)
			old.Retired(raftlog.ErrCorrupt)
		})), calls("log.Close()", "keeper.Close()", "cluster.HasLeader(false)", leaderless)},

		{"Outlets.Propose", "", voting(of(func(r *rig) { r.voted().propose(5, []byte("c")) })),
			calls("log.Propose(5, c)")},
		{"Outlets.Confirm", "", voting(of(func(r *rig) { r.voted().confirm(5, 8) })), calls("log.Confirm(5, 8)")},
		{"Outlets.Reply", "to this instance", voting(func(r *rig) error { return r.n.reply(self, []byte("a")) }),
			calls("each.Receive(self, a)")},
		{"Outlets.Reply", "to another", voting(func(r *rig) error { return r.n.reply(from(2).Instance, []byte("a")) }),
			calls(`port.Send(two : renewals "", commands "", replies "a", 0 messages)`)},
		{"Outlets.Reply", "the queue is full", unsent(func(r *rig) error {
			return r.n.reply(from(2).Instance, []byte("a"))
		}), calls(`port.Send(two : renewals "", commands "", replies "a", 0 messages)`, "= error")},
		{"Outlets.WallUnixMS", "", voting(of(func(r *rig) { r.n.env.wall() })), ""},

		{"raftlog.Send", "", voting(of(func(r *rig) { r.voted().send(both) })),
			calls(`port.Send(two host2: renewals "", commands "", replies "", 1 messages)`,
				`port.Send(three host3: renewals "", commands "", replies "", 1 messages)`)},
		{"raftlog.Send", "the queues are full", unsent(of(func(r *rig) { r.voted().send(both) })),
			calls(`port.Send(two host2: renewals "", commands "", replies "", 1 messages)`, "log.Unreachable(2)",
				`port.Send(three host3: renewals "", commands "", replies "", 1 messages)`, "log.Unreachable(3)")},
		{"raftlog.SendDuplicates", "", voting(of(func(r *rig) { r.voted().sendDuplicates(message(1, 2)) })),
			calls("port.SendDuplicates(two host2, 1 messages)")},
		{"raftlog.SendSnapshot", "", voting(of(func(r *rig) {
			r.voted().sendSnapshot(message(1, 2)[0], func(ok bool) { r.note("done(%v)", ok) })
		})), calls("port.SendSnapshot(two host2, from 1, 1m0s)", "done(true)")},
		{"raftlog.SendSnapshot", "it did not arrive", unsent(of(func(r *rig) {
			r.voted().sendSnapshot(message(1, 2)[0], func(ok bool) { r.note("done(%v)", ok) })
		})), calls("port.SendSnapshot(two host2, from 1, 1m0s)", "done(false)")},
		{"raftlog.SendSnapshot", "after Close", voting(of(func(r *rig) {
			r.n.goroutines.end()
			r.voted().sendSnapshot(message(1, 2)[0], func(ok bool) { r.note("done(%v)", ok) })
		})), calls("done(false)")},
	}
}

func clientRows() []row {
	self, two := nodeid.Endpoint{ID: nodeidtest.Key(1).ID()}, nodeid.Endpoint{ID: nodeidtest.Key(2).ID(), Addr: "host2"}
	send := func(to nodeid.Endpoint) func(*rig) error {
		return func(r *rig) error { return r.n.submit(to, []byte("r"), []byte("c")) }
	}
	const sent = `port.Send(two host2: renewals "r", commands "c", replies "", 0 messages)`
	return []row{
		{"client.Send", "to itself, without a replica", send(self), "= error"},
		{"client.Send", "to itself", voting(send(self)), calls("keeper.ReceiveFrom(self of start 9, all rights, r, c)")},
		{"client.Send", "to another", voting(send(two)), sent},
		{"client.Send", "attached, without a vote", on(func(r *rig) {
			r.n.leading.attached.Store(true)
			r.n.prefer(places())
		}, send(two)), calls("port.Spare(two, two three, 2)", sent)},
		{"client.Send", "the queue is full", func(r *rig) error {
			r.sendFail = transport.ErrFull
			return r.n.submit(two, nil, []byte("c"))
		}, calls(`port.Send(two host2: renewals "", commands "c", replies "", 0 messages)`, "= error")},
		{"client.Changed", "attached", of(func(r *rig) { r.n.phaseChanged(client.Attached) }),
			calls("cluster.HasLeader(true)")},
		{"client.Changed", "searching", of(func(r *rig) { r.n.phaseChanged(client.Seeking) }),
			calls("cluster.HasLeader(false)")},
		{"client.Watch", "", of(func(r *rig) { (&observer{node: r.n}).news(&client.News{}) }), ""},
		{"client.Random", "", of(func(r *rig) { r.n.env.random(make([]byte, 8)) }), ""},
		{"transport.Unable", "it leads", led(of(func(r *rig) { r.n.unreachable(time.Minute) })),
			calls("log.Transfer(0, no limit)")},
		{"transport.Unable", "it does not lead", voting(of(func(r *rig) { r.n.unreachable(time.Minute) })), ""},
	}
}

func instanceRows() []row {
	add := of(func(r *rig) { _ = r.n.sessions.Add(recordedClient{r, "new"}) })
	leave := func(r *rig) error { return r.n.Leave(context.Background()) }
	shut := func(replica ...string) string {
		return calls(append(append([]string{"second.Close()", "third.Close()", "own.Close()", "cluster.Close()"},
			replica...), "port.Close()")...)
	}
	return []row{
		{"Instance.Open", "in no group", add, ""},
		{"Instance.Open", "after Member", on(func(r *rig) { life{r.n}.Member(rigGroup, places()) }, add),
			calls("new.Rebind(record of an own session, self two three)")},
		{"Instance.Open", "after Voters", on(func(r *rig) {
			life{r.n}.Member(rigGroup, places()[:1])
			life{r.n}.Voters(places()[1:])
		}, add), calls("new.Rebind(record of an own session, two three)")},
		{"Instance.Open", "after Restart", on(func(r *rig) {
			life{r.n}.Member(rigGroup, places()[:1])
			life{r.n}.Restart(nodeidtest.Key(4), errors.New("why"))
		}, add), calls("new.Rebind(no record, )")},
		{"Instance.Open", "after Close", on(func(r *rig) { _ = r.n.Close() }, func(r *rig) error {
			_, err := r.n.Open(time.Second)
			return err
		}), "= error"},
		{"Instance.Drop", "", on(func(r *rig) { r.n.sessions.Drop(recordedClient{r, "second"}) }, host(func(l life) {
			l.Voters(places()[1:])
		})), calls("port.Prefer(host2 host3)", "own.SetTargets(two three)", "third.SetTargets(two three)")},
		{"Instance.Recover", "", voting(func(r *rig) error { return r.n.Recover(context.Background(), 9) }),
			calls("cluster.Floor(0)", "cluster.Recover(9, no limit)")},
		{"Instance.QueryStatus", "", func(r *rig) error {
			_, err := r.n.QueryStatus(context.Background())
			return err
		}, calls("cluster.QueryStatus(no limit)")},
		{"Instance.Close", "no replica", func(r *rig) error { return r.n.Close() }, shut()},
		{"Instance.Close", "a replica", voting(func(r *rig) error { return r.n.Close() }),
			shut("log.Close()", "keeper.Close()")},
		{"Instance.Leave", "in no group", leave, calls("each.Leaving(true)", "each.WaitReleased(10s)",
			"each.CloseSession(1s)", "cluster.Leave(alone true, 10s)", shut())},
		{"Instance.Leave", "a member without a vote", on(func(r *rig) { r.status.Phase = cluster.PhaseMember }, leave),
			calls("each.Leaving(true)", "each.WaitReleased(10s)", "each.CloseSession(10s)", "cluster.Leave(alone false, 10s)",
				shut())},
		{"Instance.Leave", "a limit of the caller's own", on(func(r *rig) { r.status.Phase = cluster.PhaseMember },
			func(r *rig) error {
				ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
				defer cancel()
				return r.n.Leave(ctx)
			}), calls("each.Leaving(true)", "each.WaitReleased(4s)", "each.CloseSession(4s)", "cluster.Leave(alone false, 4s)",
			shut())},
		{"Instance.Leave", "a voter", voting(leave), calls("each.Leaving(true)", "each.WaitReleased(10s)",
			"cluster.QueryStatusFor(1, 3s)", "each.CloseSession(10s)", "cluster.Leave(alone false, 10s)",
			shut("log.Close()", "keeper.Close()"))},
		{"Instance.Leave", "all leave", voting(func(r *rig) error {
			r.asked = cluster.VoterStatus{AllLeaving: true}
			return leave(r)
		}), calls("each.Leaving(true)", "each.WaitReleased(10s)", "cluster.QueryStatusFor(1, 3s)", "each.CloseSession(1s)",
			"cluster.Leave(alone true, 10s)", shut("log.Close()", "keeper.Close()"))},
		{"Instance.Leave", "a voter, and no leader answers", voting(func(r *rig) error {
			r.silent = cluster.ErrNoLeader
			return leave(r)
		}), calls("each.Leaving(true)", "each.WaitReleased(10s)", "cluster.QueryStatusFor(1, 3s)", "each.CloseSession(1s)",
			"cluster.Leave(alone true, 10s)", shut("log.Close()", "keeper.Close()"))},
		{"Instance.Leave", "a lock stays held", func(r *rig) error {
			r.hangs = client.ErrStillHeld
			return leave(r)
		}, calls("each.Leaving(true)", "each.WaitReleased(10s)", "cluster.Leave(alone true, 10s)", shut(), "= error")},
		{"Instance.Leave", "a lock is held at the end", func(r *rig) error {
			r.unclosed = client.ErrStillHeld
			return leave(r)
		}, calls("each.Leaving(true)", "each.WaitReleased(10s)", "own.CloseSession(1s)",
			"cluster.Leave(alone true, 10s)", shut(), "= error")},
		{"Instance.Leave", "no leader closes a session", func(r *rig) error {
			r.unclosed = context.DeadlineExceeded
			return leave(r)
		}, calls("each.Leaving(true)", "each.WaitReleased(10s)", "each.CloseSession(1s)", "cluster.Leave(alone true, 10s)",
			shut())},
		{"Instance.Leave", "a second time", on(func(r *rig) { _ = leave(r) }, leave), ""},
		{"Instance.Leave", "it has failed", on(func(r *rig) { r.n.fail(errors.New("why")) }, leave), "= failed"},
	}
}

// refusedCalls are calls that an ended instance makes of no part.
func endedRows() []row {
	closed := func(do func(*rig) error) func(*rig) error {
		return on(func(r *rig) {
			r.withReplica()
			_ = r.n.Close()
		}, do)
	}
	return []row{
		{"Host.Bound", "after Close", closed(host(func(l life) { l.Bound(charter(places()[1:]), 0) })),
			calls("port.Prefer(host2 host3)")},
		{"Host.Prepared", "after Close", closed(host(func(l life) { l.Prepared(rigGroup, 9) })),
			calls("log.Start(9, empty false)", "log.Close()")},
		{"Host.Dismissed", "after Close", closed(host(func(l life) { l.Dismissed(rigRaft) })), ""},
	}
}

func table() []row {
	return slices.Concat(frameRows(), hostRows(), replicaRows(), clientRows(), instanceRows(), endedRows())
}

// Each event calls exactly what its row of the table says, in this order, and of all sessions.
func TestWiring(t *testing.T) {
	for _, c := range table() {
		t.Run(strings.TrimSuffix(c.event+"/"+c.given, "/"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				err := c.do(r)
				synctest.Wait()
				got := append(r.taken(), r.left()...)
				if err != nil {
					got = append(got, "= error")
				}
				if got := strings.Join(got, "\n"); got != c.want {
					t.Errorf("calls\n%s\nwant\n%s (%v)", got, c.want, err)
				}
			})
		})
	}
}

// TestTheDirectoryIsClosedLast checks that the directory stays locked until each part has ended,
// however the instance ends, and so does the run directory.
func TestTheDirectoryIsClosedLast(t *testing.T) {
	ends := map[string]func(n *Instance){
		"Close": func(n *Instance) { _ = n.Close() }, "Leave": func(n *Instance) { _ = n.Leave(t.Context()) },
		"fail": func(n *Instance) { n.fail(errors.New("why")) },
	}
	for how, end := range ends {
		closedLast(t, how, (*rig).withDirAt, end, func(path string) (io.Closer, error) {
			return storage.Open(storage.Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
		})
		closedLast(t, how+", a run directory", (*rig).withRunDirAt, end, func(path string) (io.Closer, error) {
			return storage.OpenRun(path, nil, slog.New(slog.DiscardHandler))
		})
	}
}

func closedLast(t *testing.T, how string, with func(*rig, string), end func(*Instance),
	open func(string) (io.Closer, error)) {
	r, path := newRig(t), t.TempDir()
	r.withReplica()
	with(r, path)
	var calls atomic.Int64 // after fail, a goroutine ends the parts
	r.beside = func(line string) {
		if !strings.Contains(line, "Close()") {
			return
		}
		calls.Add(1)
		if _, err := open(path); !errors.Is(err, storage.ErrInUse) {
			t.Errorf("%s: at %s the directory can be opened again: %v", how, line, err)
		}
	}
	end(r.n)
	r.end()
	if d, err := open(path); err != nil || d.Close() != nil || calls.Load() < 6 {
		t.Errorf("%s: %d calls, and then the directory is in use: %v", how, calls.Load(), err)
	}
}

// read are the calls of the parts that change nothing.
var read = []string{"client.Status", "port.Linked", "port.Met", "port.To", "cluster.Voter", "cluster.Status",
	"cluster.Report", "log.Survey", "log.Status", "keeper.Left"}

// ofCore are the calls of a replica's core, and of the answer to a question, and not of the wiring.
var ofCore = []string{"cluster.Heir", "cluster.Log", "cluster.Configured", "cluster.Applied",
	"cluster.BornApplied", "cluster.Adopt",
	"keeper.Leads", "keeper.Applied", "keeper.Yield", "keeper.Confirmed", "keeper.Searched", "keeper.ProposeAdopt",
	"keeper.ProposeRaise", "keeper.ProposeEnd", "raftlog.Deferrable", "raftlog.Queued", "raftlog.Digest"}

// asks are the methods of an instance that only read, or start what their caller gives them.
var asks = []string{"Start", "Client", "Clients", "Tracer", "Leaving", "Spawn", "Background", "Now", "Wall", "Random",
	"ID", "Started", "AskDisks", "LearnNames", "Leaderless", "Picture", "Rights", "Err", "Inside"}

// events returns all events: the methods and functions through which the parts call the instance,
// and the methods of the instance itself.
func events() []string {
	var all []string
	methods := func(of string, t reflect.Type) {
		for i := range t.NumMethod() {
			all = append(all, of+"."+t.Method(i).Name)
		}
	}
	functions := func(of string, t reflect.Type) {
		for i := range t.NumField() {
			if f := t.Field(i); f.Type.Kind() == reflect.Func && !slices.Contains(ofCore, of+"."+f.Name) {
				all = append(all, of+"."+f.Name)
			}
		}
	}
	methods("Handler", reflect.TypeFor[transport.Handler]())
	methods("Host", reflect.TypeFor[cluster.DurableHost]())
	methods("replica", reflect.TypeFor[replica.Host]())
	functions("Outlets", reflect.TypeFor[keeper.Outlets]())
	functions("raftlog", reflect.TypeFor[raftlog.Config]())
	functions("client", reflect.TypeFor[client.Config]())
	methods("Instance", reflect.TypeFor[*Instance]())
	for i, t := 0, reflect.TypeFor[transport.Frame](); i < t.NumField(); i++ {
		all = append(all, "Frame."+t.Field(i).Name)
	}
	return slices.DeleteFunc(all, func(event string) bool {
		method, instances := strings.CutPrefix(event, "Instance.")
		return event == "Handler.Frame" || instances && slices.Contains(asks, method)
	})
}

// A new kind of frame, a new method of a host, or a new call of a part fails without a row.
func TestWiringHasARowForEachEventAndEachCall(t *testing.T) {
	have := map[string]bool{}
	var wanted strings.Builder
	for _, c := range table() {
		have[c.event] = true
		wanted.WriteString(c.want + "\n")
	}
	for _, event := range events() {
		if !have[event] {
			t.Errorf("%s has no row: say what it calls, in which order", event)
		}
	}
	called := wanted.String()
	for of, part := range map[string]reflect.Type{
		"client": reflect.TypeFor[sessionClient](), "port": reflect.TypeFor[port](), "log": reflect.TypeFor[replicaLog](),
		"cluster": reflect.TypeFor[membership](), "keeper": reflect.TypeFor[leases](),
	} {
		for i := range part.NumMethod() {
			call := of + "." + part.Method(i).Name
			in := "(?m)^" + regexp.QuoteMeta(call) + "\\("
			if of == "client" {
				in = "(?m)^(own|second|third)." + part.Method(i).Name + "\\("
			}
			if !slices.Contains(slices.Concat(read, ofCore), call) && !regexp.MustCompile(in).MatchString(called) {
				t.Errorf("no row calls %s", call)
			}
		}
	}
}

// A raft ID is given up only if its log can never be read again.
func TestWhenARaftIDIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		err           error
		durable, want bool
	}{
		{raftlog.ErrStorage, false, true}, {raftlog.ErrStorage, true, false}, {raftlog.ErrHung, true, false},
		{storage.ErrLost, true, false}, {storage.ErrLogOpen, true, false}, {raftlog.ErrBroken, true, false},
		{raftlog.ErrCorrupt, true, true}, {storage.ErrEnded, true, true},
		{fmt.Errorf("%w: another replica", storage.ErrEnded), true, true},
	} {
		if got := unusable(c.durable, c.err); got != c.want {
			t.Errorf("durable %v, %v: given up is %v", c.durable, c.err, got)
		}
	}
}
