package instance

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

// configured returns an instance that has not started, and has another value in each setting.
func configured(t *testing.T, tier credentials.Tier) *Instance {
	t.Helper()
	wall := time.Unix(1000, 0)
	n := New(Config{Name: "name", Cluster: "cluster", Zone: "zone", Bind: "bind:1", Advertise: "advertise:2",
		Join: []string{"join:3"}, JoinFunc: func(context.Context) ([]string, error) { return []string{"func"}, nil },
		SessionTTL: 4 * time.Second, Logger: slog.New(slog.DiscardHandler), Version: "version",
		Group: replica.Settings{Replicas: 5, Founders: []string{"founder", "name"}, Voters: 6, SessionTTL: 7 * time.Second,
			Grace: 8 * time.Second, SessionBytes: 9, GroupBytes: 10},
		Self: credentials.Peer{Tier: tier},
		World: outside.World{Clock: still(11), Wall: func() time.Time { return wall }, Rules: 12, Build: 15,
			Fingerprints: []uint64{13},
			Random:       func(b []byte) { b[0] = 14 }, Kubernetes: true, Limits: lockfsm.Limits{SessionBytes: 15}}})
	key := nodeidtest.Key(1)
	n.key.Store(&key)
	n.address, n.begins.Life = "here:16", 17
	return n
}

// withoutFunctions sets all functions of a struct to nil, and returns the names of those that were
// set.
func withoutFunctions(config any) (set []string) {
	v := reflect.ValueOf(config).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Func && !f.IsNil() {
			set = append(set, v.Type().Field(i).Name)
			f.SetZero()
		}
	}
	return set
}

// TestEachSettingReachesItsPart compares the whole configurations of the port and of package
// cluster with that of the instance.
func TestEachSettingReachesItsPart(t *testing.T) {
	for _, tier := range []credentials.Tier{credentials.Root, credentials.Member} {
		n := configured(t, tier)
		listener := transport.Deaf()
		reach := "here:16"
		if tier == credentials.Member {
			reach = ""
		}
		port := n.portConfig(listener)
		set := withoutFunctions(&port)
		want := transport.Config{Cluster: "cluster", Self: transport.Self{Key: nodeidtest.Key(1), Addr: reach}, Life: 17,
			Listener: listener, Handler: inbound{n}, Logger: n.logger, Rules: []uint64{13}}
		if !reflect.DeepEqual(port, want) || !reflect.DeepEqual(set, []string{"Dial", "Unable", "Random", "Wall"}) {
			t.Errorf("the port gets %+v, and the functions %q\nwant %+v", port, set, want)
		}
		c := n.clusterConfig(outbound{})
		if list, err := c.JoinFunc(t.Context()); err != nil || len(list) != 1 || c.Wall() != time.Unix(1000, 0) {
			t.Errorf("the functions return %q, %v, %v", list, err, c.Wall())
		}
		set = withoutFunctions(&c)
		wanted := cluster.Config{Name: "name", Label: "cluster", Zone: "zone", Advertise: "here:16", Key: nodeidtest.Key(1),
			Join: []string{"join:3"}, Settings: founding.Settings{Replicas: 5, Founders: []string{"founder", "name"}, Voters: 6,
				SessionTTL: 7 * time.Second, Grace: 8 * time.Second}, Rules: 12, Net: outbound{}, Host: life{n},
			Clock: still(11), Logger: n.logger, Member: tier == credentials.Member, Kubernetes: true}
		functions := []string{"Gossip", "Wall", "Resolve", "JoinFunc", "Awaited", "Random"}
		if !reflect.DeepEqual(c, wanted) || !reflect.DeepEqual(set, functions) {
			t.Errorf("package cluster gets %+v, and the functions %q\nwant %+v", c, set, wanted)
		}
		n.records = &records{site: "site"}
		if got := n.clusterConfig(outbound{}); got.Records != cluster.Records(n.records) || got.Site != "site" {
			t.Errorf("the records are %v, of %q", got.Records, got.Site)
		}
		wrapped := &records{}
		n.env.records = func(cluster.Records) cluster.Records { return wrapped }
		if got := n.clusterConfig(outbound{}).Records; got != cluster.Records(wrapped) {
			t.Errorf("the wrapped records are %v", got)
		}
		var record replica.Record
		for _, founds := range []bool{true, false} {
			if !founds {
				n.config.Name = "other"
			}
			record = replica.Record{Instance: nodeidtest.Key(1).ID().String(), Name: n.config.Name, Addr: reach, Zone: "zone",
				Version: "version", Rules: 12, Build: 15, Settings: n.config.Group.Named(), Since: 1_000_000}
			if tier == credentials.Member {
				record.Instance = ""
			}
			if founds {
				record.Founders = n.config.Group.Founders
			}
			if got := replica.DecodeRecord(n.record()); !reflect.DeepEqual(got, record) {
				t.Errorf("its record is %+v, want %+v", got, record)
			}
		}
		if got := replica.DecodeRecord(n.ownRecord()); !reflect.DeepEqual(got, record.OwnSession()) {
			t.Errorf("the record of a further session is %+v", got)
		}
	}
}

// TestWhichInstanceListens checks which instances open a socket, and which address they ask for.
func TestWhichInstanceListens(t *testing.T) {
	for i, c := range []struct {
		config Config
		at     string // "" means that no socket is opened
	}{
		{Config{Bind: "a:1"}, "a:1"}, {Config{}, "127.0.0.1:0"}, {Config{Bind: "a:1", Unreachable: true}, ""},
		{Config{Bind: "a:1", Self: credentials.Peer{Tier: credentials.Member}}, ""},
	} {
		for _, fails := range []bool{false, true} {
			at, deaf := "", transport.Deaf()
			l, err := c.config.listen(env{listen: func(address string) (net.Listener, error) {
				if at = address; fails {
					return nil, errCall
				}
				return deaf, nil
			}})
			if at != c.at || errors.Is(err, errCall) != (fails && c.at != "") || (err == nil) != (l != nil) {
				t.Errorf("%d, it fails %v: listens at %q: %v, %v", i, fails, at, l, err)
			}
		}
	}
}

// TestWhatAnInstancePrepares checks the key, the number of starts, and the address of an instance
// in memory, and of one with a new directory.
func TestWhatAnInstancePrepares(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	listening := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	prepared := func(dir string, tier credentials.Tier) *Instance {
		t.Helper()
		n := configured(t, tier)
		n.config.Dir, n.begins.Life = dir, 0
		if err := n.prepare(t.Context(), listening); err != nil {
			t.Fatal(err)
		}
		return n
	}
	one, member := prepared("", credentials.Root), prepared("", credentials.Member)
	if one.begins.Life != 0 || one.records != nil || one.address != "advertise:2" || member.address != "127.0.0.1:7" ||
		one.instance() != nodeid.NewKey(one.env.random).ID() {
		t.Errorf("in memory: life %d, at %q and %q", one.begins.Life, one.address, member.address)
	}
	durable := prepared(dir, credentials.Root)
	if durable.records == nil || durable.records.during == nil || nodeid.Count(durable.begins.Life) != 1 ||
		durable.instance() != one.instance() {
		t.Errorf("with a directory: life %d, the key of %v", durable.begins.Life, durable.instance())
	}
	if err := durable.closeDir(); err != nil {
		t.Fatal(err)
	}
	n := configured(t, credentials.Root)
	n.config.Dir = filepath.Join(dir, "none", "none")
	if err := n.prepare(t.Context(), listening); err == nil || n.dir != nil {
		t.Errorf("a directory without a parent: %v", err)
	}
	n.config.Dir, n.config.Advertise = "", ""
	if err := n.prepare(t.Context(), &net.UnixAddr{Name: "x"}); err == nil {
		t.Error("a socket without a port is advertised")
	}
	if err := n.closeDir(); err != nil {
		t.Error(err)
	}
}

// TestAHistoryHasTheTimeOfTheWall checks the times of a recording: those of the boot clock, from
// the wall clock's time at the start.
func TestAHistoryHasTheTimeOfTheWall(t *testing.T) {
	n := configured(t, credentials.Root)
	if n.newHistory() != nil || n.newTracer() != nil {
		t.Error("something is recorded without a writer")
	}
	var b bytes.Buffer
	n.config.History, n.env.clock = &b, still(time.Second)
	h := n.newHistory()
	n.env.clock = still(3 * time.Second)
	if got, want := h.Now(), time.Unix(1002, 0).UnixNano(); got != want {
		t.Errorf("the time is %d, want %d", got, want)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if tracer := n.newTracer(); tracer.History() == nil || tracer.Close() != nil {
		t.Error("the tracer has no history")
	}
}

// TestWhoseRecordsAreTrue checks the record of a new session against what its connection proves: of
// this instance, of a peer that the port knows, and of one that it does not know.
func TestWhoseRecordsAreTrue(t *testing.T) {
	r := newRig(t)
	defer r.end()
	two, four := nodeidtest.Key(2).ID(), nodeidtest.Key(4).ID()
	r.met = map[nodeid.ID]string{two: "host2"}
	guest, err := capability.For("cron", "lock jobs/*")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		from     nodeid.ID
		rights   *capability.Capability
		instance nodeid.ID
		addr     string
		want     bool
	}{
		{r.n.instance(), nil, r.n.instance(), "host1", true}, {r.n.instance(), nil, r.n.instance(), "host2", false},
		{r.n.instance(), nil, two, "host1", false}, {two, nil, two, "host2", true}, {two, nil, two, "host1", false},
		{two, nil, r.n.instance(), "host2", false}, {two, guest, two, "host2", false}, {four, nil, four, "host4", false},
		{four, nil, four, "", false},
	} {
		record := replica.Record{Instance: c.instance.String(), Addr: c.addr}.Encode()
		if got := r.n.vouch(c.from, c.rights, record); got != c.want {
			t.Errorf("row %d: %v", i, got)
		}
	}
}

// TestABuildWithOldRulesIsRefused checks the answer to the record of each build.
func TestABuildWithOldRulesIsRefused(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.leading()
	own := r.voted()
	machine, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1, Rules: lockfsm.RulesVersion,
		SessionTTL: time.Second, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.core.Restore(3, 3, machine.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	for rules := range uint32(lockfsm.RulesVersion + 2) {
		want := session.Outdated{}
		if rules > 0 && rules < lockfsm.RulesVersion {
			want = session.Outdated{Group: lockfsm.RulesVersion, Build: rules}
		}
		if got := own.outdated(replica.Record{Name: "n", Rules: rules}.Encode()); got != want {
			t.Errorf("rules %d: %+v, want %+v", rules, got, want)
		}
	}
}

// TestThePictureIsWhole compares all that an instance shows of itself: before it has joined, as a
// voter, as the leader, and after its failures.
func TestThePictureIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		n := r.n
		n.env.clock, n.grantable.since, n.grantable.began, n.grantable.can = still(time.Hour), 10, 5, true
		r.own = client.Status{Session: 9, Leader: nodeid.Endpoint{ID: nodeidtest.Key(3).ID()}}
		r.starved = 7
		sessions := []client.Status{r.own, {Session: 6}, {Session: 5}}
		hour := time.Hour
		base := Picture{ID: nodeidtest.Key(1).ID(), Address: "host1", Now: still(hour).Now(), Sessions: sessions,
			Leader: nodeidtest.Key(3).ID(), Age: hour - 5, Available: hour - 10}
		compare := func(when string, want Picture) {
			t.Helper()
			n.known.learn(nodeidtest.Key(2).ID(), InstanceName{Name: "second"})
			got := n.Picture()
			if got.Started != want.Started || (got.Linked != nil) != want.Started {
				t.Errorf("%s: started %v", when, got.Started)
			}
			if want.Started && got.Names.Name(nodeidtest.Key(2).ID()) != "second" {
				t.Errorf("%s: names %+v", when, got.Names)
			}
			got.Linked, got.Names = nil, InstanceNames{}
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("%s: %+v\nwant %+v", when, *got, want)
			}
		}
		members := n.members.Swap(nil)
		compare("before the start", base)
		n.members.Store(members)
		n.self.Tier = credentials.Member
		r.status = cluster.Status{Voters: places()[:1], Group: 7}
		want := base
		want.Tier, want.Member, want.Started, want.Cluster, want.OnlyVoter = credentials.Member, true, true, r.status, true
		compare("a member", want)
		n.self.Tier = credentials.Root
		r.withReplica()
		want.Tier, want.Member, want.Cluster, want.OnlyVoter = credentials.Root, false, r.status, false
		want.Votes, want.Term, want.Starved, want.Leader = true, 5, 7, nodeidtest.Key(2).ID()
		compare("a voter", want)
		r.leading()
		r.report = &voters.Report{Target: 3}
		want.Cluster, want.Leading, want.Leader, want.Report = r.status, true, nodeidtest.Key(1).ID(), r.report
		compare("the leader", want)
		unread := errors.Join(raftlog.ErrStorage)
		n.unread.Store(&unread)
		n.disk.passes = &DiskFault{State: DiskLow}
		n.dir = new(storage.Dir)
		want.Unread, want.BadDisk, want.Durable, want.Disk = unread, true, true, n.disk.passes
		want.Disks = []FaultyDisk{{Name: n.instance().String(), Instance: n.instance().String(), DiskFault: *n.disk.passes}}
		compare("its log cannot be read", want)
		unread, failed := errors.New("another"), client.ErrClosed
		n.ending.end(failed)
		want.Unread, want.BadDisk, want.Err = unread, false, failed
		compare("it has failed", want)
		n.dir = nil
	})
}

// TestHowLongThereIsNoLeader checks the time without a leader, which counts from the first look.
func TestHowLongThereIsNoLeader(t *testing.T) {
	r := newRig(t)
	defer r.end()
	now := clock.Time(time.Hour)
	for i, c := range []struct {
		after time.Duration
		phase client.Phase
		want  time.Duration // a second later
	}{{0, client.Seeking, time.Second}, {time.Second, client.Opening, 2 * time.Second}, {time.Second, client.Attached, 0},
		{time.Second, client.Seeking, time.Second}} {
		now = now.Add(c.after)
		r.n.env.clock = still(now)
		if i == 0 && r.n.Leaderless() != 0 {
			t.Error("before the first look there is no leader")
		}
		r.n.leading.attached.Store(c.phase == client.Attached)
		r.n.leaderKnown()
		r.n.env.clock = still(now.Add(time.Second))
		if got := r.n.Leaderless(); got != c.want {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
}

// TestHowLongSessionsLast checks what a leader says about the rest of each session, and which of
// its answers have a recent stamp.
func TestHowLongSessionsLast(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.leading()
	r.n.env.wall = func() time.Time { return time.UnixMilli(77) }
	want := map[lockfsm.SessionID]time.Duration{3: 3 * time.Second, 5: 5 * time.Second}
	if got := r.voted().left(t.Context(), []lockfsm.SessionID{3, 5}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := r.voted().left(t.Context(), nil); got != nil {
		t.Errorf("%v of no session", got)
	}
	stamp := lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 77}.Append(nil)
	for _, op := range []replica.Op{replica.OpReserve, replica.OpPut, replica.OpEvict, replica.OpValue} {
		got := r.voted().stamp(&replica.Question{Op: op})
		if op == replica.OpReserve && !bytes.Equal(got, stamp) || op != replica.OpReserve && got != nil {
			t.Errorf("%s has the stamp %q", op, got)
		}
	}
}

// TestARunOfAReplicaBeginsAtAnotherNumber starts the replica of one directory twice. Commands that
// the first run has proposed must not answer the questions of the second.
func TestARunOfAReplicaBeginsAtAnotherNumber(t *testing.T) {
	var numbers []uint64
	for range 2 {
		r := newRig(t)
		life{r.n}.Prepared(rigGroup, rigRaft)
		one, err := r.n.replica.Load().core.Questions.Ask(replica.Question{Op: replica.OpCheck})
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, one.Number)
	}
	if a, b := numbers[0], numbers[1]; max(a, b)-min(a, b) < 1<<20 {
		t.Errorf("the numbers begin at %x and %x", a, b)
	}
}
