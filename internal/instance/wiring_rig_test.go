package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// rig is an instance whose parts are recorders. Its own session and two sessions of the user exist
// from the beginning.
type rig struct {
	t *testing.T
	n *Instance

	mu    sync.Mutex
	lines []string
	told  []string // what the hooks were told

	beside func(line string) // is called for each line

	status   cluster.Status
	voters   map[uint64]cluster.Voter // the address book
	asked    cluster.VoterStatus      // the answer of the leader
	silent   error                    // no leader answers about a replica
	linked   bool
	logged   bool // the directory has a log
	sendFail error
	survey   raftlog.Survey
	hangs    error                // the error of WaitReleased
	unclosed error                // the error of CloseSession
	met      map[nodeid.ID]string // the addresses that the port has proved
	own      client.Status        // of the session of the instance itself
	starved  time.Duration        // of the log
	report   *voters.Report       // nil unless this instance leads
}

const (
	rigGroup = 7
	rigRaft  = 1
)

// places are the replicas of the group of the rig: this instance, and two others.
func places() []cluster.Voter {
	var all []cluster.Voter
	for i := range uint64(3) {
		all = append(all, cluster.Voter{Raft: i + 1, Instance: nodeidtest.Key(i + 1).ID(), Addr: fmt.Sprint("host", i+1)})
	}
	return all
}

var instanceNames = map[nodeid.ID]string{
	nodeidtest.Key(1).ID(): "self", nodeidtest.Key(2).ID(): "two", nodeidtest.Key(3).ID(): "three",
	nodeidtest.Key(4).ID(): "four", {}: "none",
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, voters: map[uint64]cluster.Voter{}, asked: cluster.VoterStatus{MayStop: true}}
	r.n = New(Config{Name: "a", Cluster: "c", SessionTTL: time.Second, Logger: slog.New(slog.DiscardHandler),
		Hooks: &Hooks{Node: r.tells}, Trace: trace.Config{Queued: true}, World: outside.World{Clock: clock.Monotonic()}})
	n := r.n
	n.trace = n.newTracer()
	n.address, n.begins.Life = "host1", 9
	key := nodeidtest.Key(1)
	n.key.Store(&key)
	n.port = recordedPort{r}
	n.client = client.New(client.Config{Clock: n.env.clock, TTL: time.Second, Send: n.submit, Random: n.env.random})
	n.sessions.First = recordedClient{r, "own"}
	for _, name := range []string{"second", "third"} {
		if err := n.sessions.Add(recordedClient{r, name}); err != nil {
			t.Fatal(err)
		}
	}
	members := membership(recordedCluster{r})
	n.members.Store(&members)
	close(n.started)
	n.env.startLog = func(c raftlog.Config) (replicaLog, error) {
		state, err := c.Store.Load()
		r.note("log.Start(%d, empty %v)", c.ID, state.Empty())
		return recordedLog{r}, errors.Join(err, c.Store.Close())
	}
	return r
}

// tells notes what a hook is told. Another goroutine calls it, so it has a list of its own.
func (r *rig) tells(e NodeEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf("hook: %+v", e))
}

// withReplica gives the instance a replica of a group of three, which follows two.
func (r *rig) withReplica() { r.replicaOf(raftlog.Role{Term: 5, Leader: 2}) }

func (r *rig) leading() { r.replicaOf(raftlog.Role{Term: 5, Leader: 1, Leading: true}) }

func (r *rig) replicaOf(role raftlog.Role) {
	n := r.n
	own := &ownReplica{node: n, started: make(chan struct{}), stopped: make(chan struct{}), log: recordedLog{r},
		keeper: recordedKeeper{r}}
	own.ctx, own.cancel = context.WithCancel(context.Background())
	close(own.started)
	own.core = replica.NewCore(replica.CoreConfig{Group: rigGroup, ID: rigRaft, Keeper: recordedKeeper{r},
		Cluster: recordedCluster{r}, Host: own})
	own.View = own.core.View
	config := raftlog.Configuration{Index: 1}
	for _, v := range places() {
		r.voters[v.Raft] = v
		config.Voters = append(config.Voters, v.Raft)
		config.Members = append(config.Members, raftlog.Member{ID: v.Raft, Context: founding.AppendPlace(nil, v)})
	}
	own.core.Configured(config)
	n.replica.Store(own)
	own.core.Role(role)
	r.status.Voters, r.status.Phase = places(), cluster.PhaseMember
}

func (r *rig) voted() *ownReplica { return r.n.replica.Load() }

func (r *rig) withDir() { r.withDirAt(r.t.TempDir()) }

func (r *rig) withDirAt(path string) {
	dir, err := storage.Open(storage.Config{Path: path, Logger: r.n.logger})
	if err != nil {
		r.t.Fatal(err)
	}
	r.n.dir = dir
	r.t.Cleanup(func() { _ = dir.Close() })
}

func (r *rig) withRunDir() { r.withRunDirAt(r.t.TempDir()) }

// withRunDirAt gives the instance a run directory, in which an earlier process has left the key of
// four.
func (r *rig) withRunDirAt(path string) { r.withRunDirOf(path, storage.OSFS()) }

func (r *rig) withRunDirOf(path string, files storage.FS) {
	run, err := openRunDir(&Config{RunDir: path, Logger: r.n.logger}, files)
	if err != nil {
		r.t.Fatal(err)
	}
	run.former, r.n.begins.run = nodeidtest.Key(4), run
	r.t.Cleanup(func() { _ = run.dir.Close() })
}

// withLog makes a log of this instance's raft ID in the directory. If ended is set, the log has
// ended.
func (r *rig) withLog(ended bool) {
	r.logged = !ended
	store, err := r.n.dir.Log(rigGroup, rigRaft)
	if err == nil {
		err = errors.Join(raftlog.Join(store, rigGroup, rigRaft), store.Close())
	}
	if ended && err == nil {
		err = r.n.dir.DropLog()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// end ends what the event has started.
func (r *rig) end() {
	if own := r.voted(); own != nil {
		own.stop()
	}
	r.n.goroutines.end()
	r.n.client.Close()
	_ = r.n.trace.Close()
}

func (r *rig) note(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case nodeid.ID:
			args[i] = instanceNames[a]
		case []nodeid.Endpoint:
			args[i] = names(a)
		case []byte:
			args[i] = string(a)
		case context.Context:
			args[i] = "no limit"
			if end, limited := a.Deadline(); limited {
				args[i] = time.Until(end)
			}
		}
	}
	line := fmt.Sprintf(format, args...)
	if r.beside != nil {
		r.beside(line)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func names(all []nodeid.Endpoint) string {
	var list []string
	for _, e := range all {
		list = append(list, instanceNames[e.ID])
	}
	return strings.Join(list, " ")
}

func (r *rig) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(slices.Clone(r.lines), r.told...)
}

// left describes what an event has left in the instance itself.
func (r *rig) left() (all []string) {
	n := r.n
	if err := n.Err(); err != nil && err != client.ErrClosed {
		all = append(all, "= failed")
	}
	if n.unread.Load() != nil {
		all = append(all, "= unread")
	}
	if f := n.diskFault(); f != nil {
		all = append(all, "= its disk: "+string(f.State))
	}
	if r.logged {
		if store, err := n.dir.Log(rigGroup, rigRaft); err == nil { // neither ended nor in use
			_ = store.Close()
			all = append(all, "= a log that can be used")
		}
	}
	return all
}

type recordedClient struct {
	*rig
	name string
}

func (c recordedClient) Follows(former []byte) {
	about := "no claim"
	if session.ProvenFormer(former, rigGroup, c.n.instance()) {
		about = instanceNames[session.NamedFormer(former)]
	}
	c.note("%s.Follows(%s)", c.name, about)
}

func (c recordedClient) Rebind(record []byte, targets []nodeid.Endpoint) {
	about := "no record"
	if record != nil {
		if about = "record"; replica.DecodeRecord(record).Own {
			about = "record of an own session"
		}
	}
	c.note("%s.Rebind(%s, %s)", c.name, about, targets)
}

func (c recordedClient) SetTargets(targets []nodeid.Endpoint) {
	c.note("%s.SetTargets(%s)", c.name, targets)
}
func (c recordedClient) Receive(from nodeid.ID, b []byte) {
	c.note("%s.Receive(%s, %s)", c.name, from, b)
}
func (c recordedClient) Down(peer nodeid.ID) { c.note("%s.Down(%s)", c.name, peer) }
func (c recordedClient) Leaving()            { c.note("%s.Leaving(%v)", c.name, c.n.ending.isLeaving()) }
func (c recordedClient) Close()              { c.note("%s.Close()", c.name) }

func (c recordedClient) Status() client.Status {
	if c.name == "own" {
		return c.own
	}
	return client.Status{Session: lockfsm.SessionID(len(c.name))}
}

func (c recordedClient) WaitReleased(ctx context.Context) error {
	c.note("%s.WaitReleased(%v)", c.name, ctx)
	return c.hangs
}

func (c recordedClient) CloseSession(ctx context.Context) error {
	c.note("%s.CloseSession(%v)", c.name, ctx)
	return c.unclosed
}

type recordedPort struct{ *rig }

func (p recordedPort) Send(to nodeid.Endpoint, f transport.Frame) error {
	what := fmt.Sprintf("renewals %q, commands %q, replies %q, %d messages", f.Renewals, f.Commands, f.Replies,
		len(f.Raft))
	switch {
	case f.Retired:
		what = "retired"
	case slices.Equal(f.Replies, session.NoVoter()):
		what = "no voter"
	}
	p.note("port.Send(%s %s: %s)", to.ID, to.Addr, what)
	return p.sendFail
}

func (p recordedPort) SendDuplicates(to nodeid.Endpoint, all []*raftpb.Message) {
	p.note("port.SendDuplicates(%s %s, %d messages)", to.ID, to.Addr, len(all))
}

func (p recordedPort) SendSnapshot(ctx context.Context, to nodeid.Endpoint, m *raftpb.Message) error {
	p.note("port.SendSnapshot(%s %s, from %d, %v)", to.ID, to.Addr, m.GetFrom(), ctx)
	return p.sendFail
}

func (p recordedPort) Identify(s transport.Self) {
	p.note("port.Identify(%s at %s, group %d, raft %d)", s.Key.ID(), s.Addr, s.Group, s.Raft)
}
func (p recordedPort) Prefer(addrs []string) { p.note("port.Prefer(%s)", strings.Join(addrs, " ")) }
func (p recordedPort) Spare(leader nodeid.ID, all []nodeid.Endpoint, count int) {
	p.note("port.Spare(%s, %s, %d)", leader, all, count)
}
func (p recordedPort) Close() error          { p.note("port.Close()"); return nil }
func (p recordedPort) Linked(nodeid.ID) bool { return p.linked }

func (p recordedPort) Met(of nodeid.ID) (transport.Identity, bool) {
	addr, met := p.met[of]
	return transport.Identity{Addr: addr}, met
}
func (p recordedPort) To(string, nodeid.ID) *transport.Remote { return nil }

type recordedCluster struct{ *rig }

func (c recordedCluster) Voter(raft uint64) (cluster.Voter, bool) {
	v, ok := c.voters[raft]
	return v, ok
}
func (c recordedCluster) Log(raft uint64, _ founding.Log) { c.note("cluster.Log(%d)", raft) }
func (c recordedCluster) Configured(uint64, uint64, []cluster.Voter) {
	c.note("cluster.Configured()")
}
func (c recordedCluster) Applied(uint64, founding.Configuration) { c.note("cluster.Applied()") }
func (c recordedCluster) BornApplied(uint64)                     { c.note("cluster.BornApplied()") }
func (c recordedCluster) Adopt(uint64, founding.Settings)        { c.note("cluster.Adopt()") }
func (c recordedCluster) Look()                                  { c.note("cluster.Look()") }
func (c recordedCluster) PeerLost(i nodeid.ID)                   { c.note("cluster.PeerLost(%s)", i) }
func (c recordedCluster) RemovedPeer(i nodeid.ID, addr string) {
	c.note("cluster.RemovedPeer(%s, %s)", i, addr)
}
func (c recordedCluster) Retired(raft uint64)    { c.note("cluster.Retired(%d)", raft) }
func (c recordedCluster) WentBack(why error)     { c.note("cluster.WentBack(%v)", why) }
func (c recordedCluster) HasLeader(known bool)   { c.note("cluster.HasLeader(%v)", known) }
func (c recordedCluster) Floor(unixMS int64)     { c.note("cluster.Floor(%d)", unixMS) }
func (c recordedCluster) Status() cluster.Status { return c.status }
func (c recordedCluster) Report() (voters.Report, bool) {
	if c.report == nil {
		return voters.Report{}, false
	}
	return *c.report, true
}
func (c recordedCluster) Heir(name string) (cluster.Heir, bool) {
	c.note("cluster.Heir(%s)", name)
	return cluster.Heir{}, false
}

func (c recordedCluster) Leave(ctx context.Context, alone bool) {
	c.note("cluster.Leave(alone %v, %v)", alone, ctx)
}
func (c recordedCluster) Close() error { c.note("cluster.Close()"); return nil }

func (c recordedCluster) Recover(ctx context.Context, group uint64) error {
	c.note("cluster.Recover(%d, %v)", group, ctx)
	return nil
}

func (c recordedCluster) QueryStatus(ctx context.Context) (cluster.VoterStatus, error) {
	c.note("cluster.QueryStatus(%v)", ctx)
	return c.asked, nil
}

func (c recordedCluster) QueryStatusFor(ctx context.Context, raft uint64) (cluster.VoterStatus, error) {
	c.note("cluster.QueryStatusFor(%d, %v)", raft, ctx)
	return c.asked, c.silent
}

type recordedLog struct{ *rig }

func (l recordedLog) Step(m *raftpb.Message) { l.note("log.Step(from %d)", m.GetFrom()) }
func (l recordedLog) StepDuplicate(m *raftpb.Message) {
	l.note("log.StepDuplicate(from %d)", m.GetFrom())
}
func (l recordedLog) PeerLost(id uint64)     { l.note("log.PeerLost(%d)", id) }
func (l recordedLog) Unreachable(id uint64)  { l.note("log.Unreachable(%d)", id) }
func (l recordedLog) Campaign()              { l.note("log.Campaign()") }
func (l recordedLog) Confirm(term, n uint64) { l.note("log.Confirm(%d, %d)", term, n) }
func (l recordedLog) Survey() raftlog.Survey { return l.survey }
func (l recordedLog) Status() raftlog.Status { return raftlog.Status{Starved: l.starved} }
func (l recordedLog) Close() error           { l.note("log.Close()"); return nil }

func (l recordedLog) Propose(term uint64, b []byte) bool {
	l.note("log.Propose(%d, %s)", term, b)
	return true
}

func (l recordedLog) Change(term uint64, c raftlog.Change) bool {
	add := uint64(0)
	if c.Add != nil {
		add = c.Add.ID
	}
	l.note("log.Change(%d, add %d, promote %v, demote %v, remove %v)", term, add, c.Promote, c.Demote, c.Remove)
	return true
}

func (l recordedLog) Transfer(ctx context.Context, to uint64) error {
	l.note("log.Transfer(%d, %v)", to, ctx)
	return nil
}

type recordedKeeper struct{ *rig }

func (k recordedKeeper) Role(r keeper.Role) {
	k.note("keeper.Role(%d, %v, %s %s)", r.Term, r.Leading, r.Leader.ID, r.Leader.Addr)
}
func (k recordedKeeper) Leads(keeper.Leadership)                 { k.note("keeper.Leads()") }
func (k recordedKeeper) Applied(*lockfsm.Result)                 { k.note("keeper.Applied()") }
func (k recordedKeeper) Yield(lockfsm.SessionID, lockfsm.Number) { k.note("keeper.Yield()") }
func (k recordedKeeper) Confirmed(_, _ uint64)                   { k.note("keeper.Confirmed()") }
func (k recordedKeeper) Searched(uint64, lockfsm.Search)         { k.note("keeper.Searched()") }
func (k recordedKeeper) ProposeRaise(uint64, uint32)             { k.note("keeper.ProposeRaise()") }
func (k recordedKeeper) ProposeEnd(uint64, keeper.Ending)        { k.note("keeper.ProposeEnd()") }
func (k recordedKeeper) Down(peer nodeid.ID)                     { k.note("keeper.Down(%s)", peer) }
func (k recordedKeeper) AllBound()                               { k.note("keeper.AllBound()") }
func (k recordedKeeper) Close()                                  { k.note("keeper.Close()") }
func (k recordedKeeper) ProposeAdopt(uint64, time.Duration, []byte, session.Budgets) {
	k.note("keeper.ProposeAdopt()")
}

func (k recordedKeeper) Left(_ context.Context, all []lockfsm.SessionID) (left []time.Duration) {
	for _, id := range all {
		left = append(left, time.Duration(id)*time.Second)
	}
	return left
}

func (k recordedKeeper) ReceiveFrom(by keeper.Sender, renewals, commands []byte) {
	under := "all rights"
	if by.Rights != nil {
		under = "rights"
	}
	k.note("keeper.ReceiveFrom(%s of start %d, %s, %s, %s)", by.ID, by.Life, under, renewals, commands)
}
