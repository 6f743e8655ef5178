package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/desk"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

// visitor is a program with a secret of its own and nothing else: real TLS, a real link, a session.
type visitor struct {
	t      *testing.T
	fleet  *fleet
	key    nodeid.Key
	port   *transport.Port
	client *client.Client
	dialed atomic.Int64 // how often others have dialed the address that it names
}

const visitorAddr = "10.0.9.9:7947"

// visit opens a visitor, which names an address at which it listens.
func (f *fleet) visit(secret string) *visitor {
	f.t.Helper()
	f.unjudged = true // it records nothing
	source, err := credentials.FromSecret(credentials.SecretConfig{Secret: secret, Cluster: "mortise", Now: time.Now})
	if err != nil {
		f.t.Fatal(err)
	}
	v := &visitor{t: f.t, fleet: f, key: nodeid.NewKey(realWorld().Random)}
	listener, err := f.net.Listen(visitorAddr)
	if err != nil {
		f.t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			v.dialed.Add(1)
			conn.Close()
		}
	}()
	v.port, err = transport.New(transport.Config{
		Cluster: "mortise", Self: transport.Self{Key: v.key, Addr: visitorAddr}, Listener: transport.Deaf(), Dial: f.net.Dialer("10.0.9.9"),
		TLS: source, Handler: v, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	v.client = client.New(client.Config{
		Clock: clock.Monotonic(), TTL: 2 * time.Second, Random: realWorld().Random,
		Send: func(to session.Target, renewals, commands []byte) error {
			return v.port.Send(transport.Peer{Instance: to.Peer, Addr: to.Addr}, transport.Frame{Renewals: renewals, Commands: commands})
		},
	})
	f.t.Cleanup(func() {
		v.client.Close()
		v.port.Close()
		listener.Close()
	})
	return v
}

// bind begins a session with that record.
func (v *visitor) bind(r replica.Record) {
	n := v.fleet.nodes[0]
	v.port.Identify(transport.Self{Key: v.key, Group: n.Cluster().Status().Group, Addr: visitorAddr})
	b, err := json.Marshal(r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.client.Rebind(b, voters(n))
}

// voters are where a client finds a voter, as n knows them.
func voters(n *node) (list []session.Target) {
	for _, v := range n.Cluster().Status().Voters {
		list = append(list, session.Target{Peer: v.Instance, Addr: v.Addr})
	}
	return list
}

// errVisitor is what a peer gets that asks a visitor.
var errVisitor = errors.New("a visitor answers no questions")

func (v *visitor) Frame(from transport.Identity, f transport.Frame) {
	if len(f.Replies) > 0 {
		v.client.Receive(from.Instance, f.Replies)
	}
}
func (v *visitor) Down(from transport.Identity, _ error) { v.client.Down(from.Instance) }
func (v *visitor) Ask(context.Context, transport.Identity, []byte) ([]byte, error) {
	return nil, errVisitor
}
func (v *visitor) MaySendSnapshot(transport.Identity, *raftpb.Message) error { return errVisitor }
func (v *visitor) Snapshot(transport.Identity, *raftpb.Message) error        { return errVisitor }

// lock tries to lock, and lets go at once.
func (v *visitor) lock(keys ...string) error {
	v.t.Helper()
	keys = slices.Sorted(slices.Values(keys))
	r := client.Request{Key: keys[0], Try: true, Terms: &client.Terms{Keys: keys[1:]}}
	var hold client.Hold
	if err := v.client.AcquireInto(brief(v.t), &hold, r); err != nil {
		return err
	}
	return hold.Release(brief(v.t))
}

// desk asks node i.
func (v *visitor) desk(i int, q desk.Question) desk.Answer {
	v.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		v.t.Fatal(err)
	}
	said, _, err := v.port.Ask(brief(v.t), address(i), nodeid.ID{}, append([]byte(desk.Mark), body...))
	if err != nil {
		v.t.Fatal(err)
	}
	var a desk.Answer
	if err := json.Unmarshal(said, &a); err != nil {
		v.t.Fatal(err)
	}
	return a
}

// TestAGuestMayDoWhatItsTextSays goes through every verb and shape of key, through the leader and through a follower.
func TestAGuestMayDoWhatItsTextSays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		outside := f.lock(0, "b")
		both, err := f.nodes[0].LockAll(brief(t), "a/both", "zz-hidden")
		if err != nil {
			t.Fatal(err)
		}
		v := f.visit(derived(t, "lock a/*", "read r/*", "force a/both", "read a/both", "lock one"))
		v.bind(replica.Record{Name: "visitor", Guest: true})
		for key, ok := range map[string]bool{"a/x": true, "a/": true, "one": true, "a": false, "b": false, "one-more": false, "r/x": false, "A/x": false} {
			if err := v.lock(key); (err == nil) != ok || !ok && !errors.Is(err, mortise.ErrNotAllowed) {
				t.Errorf("lock %q: %v", key, err)
			}
		}
		if err := v.lock("a/x", "a/y", "one"); err != nil {
			t.Error(err)
		}
		var denied *session.NotAllowedError
		if err := v.lock("a/x", "b2"); !errors.As(err, &denied) || denied.Key != "b2" || denied.For != "cron-host" || denied.Verb != "lock" {
			t.Error(err)
		}
		for _, i := range []int{f.leader(), f.follower()} {
			for _, c := range []struct {
				q    desk.Question
				verb string // that is missing; empty: it is allowed
			}{
				{desk.Question{Op: desk.Peek, Key: "a/x"}, ""}, {desk.Question{Op: desk.Peek, Key: "r/x"}, ""}, {desk.Question{Op: desk.Peek, Key: "one"}, ""},
				{desk.Question{Op: desk.Peek, Key: "b"}, "read"}, {desk.Question{Op: desk.Peek, Key: "a"}, "read"}, {desk.Question{Op: desk.Peek, Key: "one-more"}, "read"},
				{desk.Question{Op: desk.List, Key: "r/"}, ""}, {desk.Question{Op: desk.List, Key: "r/a/b"}, ""},
				{desk.Question{Op: desk.List, Key: "r"}, "read"}, {desk.Question{Op: desk.List}, "read"}, {desk.Question{Op: desk.List, Key: "a/"}, "read"},
				{desk.Question{Op: desk.Watch, Key: "r/"}, ""}, {desk.Question{Op: desk.Watch, Key: "b"}, "read"}, {desk.Question{Op: desk.Watch, After: 1}, "read"},
				{desk.Question{Op: desk.Audit}, "read"}, {desk.Question{Op: desk.Sessions}, "read"},
				{desk.Question{Op: desk.Health}, "read"}, {desk.Question{Op: desk.Recover, Group: "1"}, "root"},
				{desk.Question{Op: desk.Put, Key: "a/x", Data: []byte("d"), Nonce: lockfsm.Nonce{1}}, "write"},
				{desk.Question{Op: desk.Evict, Key: "b", Token: uint64(outside.Token()), By: "x", Reason: "r"}, "force"},
				{desk.Question{Op: desk.Evict, Key: "a/x", Token: 1, By: "x", Reason: "r"}, "force"},
			} {
				a := v.desk(i, c.q)
				if c.verb == "" && a.Error != "" || c.verb != "" && (a.Kind != desk.Denied || a.Verb != c.verb || a.For != "cron-host" || len(a.Keys)+len(a.Events) > 0) {
					t.Errorf("node %d, %s %q: %+v", i, c.q.Op, c.q.Key, a)
				}
			}
			var s mortise.Status
			if err := json.Unmarshal(v.desk(i, desk.Question{Op: desk.Here}).Status, &s); err != nil || s.Group == "" || len(s.Voters) != 3 || s.Address != "" || len(s.Members) > 0 {
				t.Errorf("node %d shows a guest %+v, %v", i, s, err)
			}
			peeked := keysOf(t, v.desk(i, desk.Question{Op: desk.Peek, Key: "a/both"}))
			if len(peeked) != 1 || !slices.Equal(peeked[0].Queue[0].Keys, []string{"a/both", "1 outside these rights"}) {
				t.Errorf("node %d shows %+v", i, peeked)
			}
		}
		if outside.Err() != nil {
			t.Fatal("a guest has ended a hold")
		}
		if a := v.desk(f.follower(), desk.Question{Op: desk.Evict, Key: "a/both", Token: uint64(both.Token()), By: "alice", Reason: "r"}); !a.Ended {
			t.Fatalf("%+v", a)
		}
		<-both.Done()
		if text := both.Err().Error(); !strings.Contains(text, "cron-host (instance "+v.key.ID().String()) || !strings.Contains(text, `claims to be "alice"`) {
			t.Error(text)
		}
	})
}

// TestRightsAreCheckedTwice: the asked instance refuses without a leader, and the leader refuses what an instance has let pass.
func TestRightsAreCheckedTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		c, err := capability.Build("cron-host", time.Time{}, "lock a/*")
		if err != nil {
			t.Fatal(err)
		}
		from := f.follower()
		for _, q := range []replica.Question{
			{Op: replica.OpPeek, Key: "b"}, {Op: replica.OpGet, Key: "b"}, {Op: replica.OpCheck, Key: "b", Token: 1}, {Op: replica.OpHolders, Key: "b"}, {Op: replica.OpList, Key: "a/"}, {Op: replica.OpWalk},
			{Op: replica.OpWatch, Key: "b"}, {Op: replica.OpPut, Key: "a/x"}, {Op: replica.OpEvict, Key: "a/x", Token: 1, By: "x"}, {Op: replica.OpEnds}, {Op: replica.OpSessions}, {Op: "dance"},
		} {
			q.Under(c, nodeid.ID{1})
			if _, err := f.nodes[from].Look(brief(t), q); !errors.Is(err, mortise.ErrNotAllowed) {
				t.Errorf("%s %q, forwarded: %v", q.Op, q.Key, err)
			}
		}
		bad := replica.Question{Op: replica.OpPeek, Key: "a/x", Rights: "everything"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s, err := f.nodes[from].Look(ctx, bad); err == nil {
			t.Errorf("rights that cannot be read: %+v", s)
		}
		v := f.visit(derived(t, "lock a/*"))
		for i := range f.nodes { // nobody is left who could lead
			if i != from {
				f.close(i)
			}
		}
		time.Sleep(5 * time.Second)
		if a := v.desk(from, desk.Question{Op: desk.Peek, Key: "b"}); a.Kind != desk.Denied {
			t.Errorf("without a leader: %+v", a)
		}
	})
}

// TestAGuestIsNoInstance: it is heard in no question of instances, it is not dialed, and no record makes it one. Nor is a member.
func TestAGuestIsNoInstance(t *testing.T) {
	for _, rights := range []string{"lock *", "member"} {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3, withSecret(secretA))
			v := f.visit(derived(t, rights))
			q := []byte(`look{"Op":"evict","Key":"k","Token":"1"}`)
			if said, _, err := v.port.Ask(brief(t), address(f.leader()), nodeid.ID{}, q); err == nil && (rights != "member" || !strings.Contains(string(said), "Denied")) {
				t.Errorf("%s: a question of an instance is answered with %s", rights, said)
			}
			n := f.nodes[0]
			news := founding.AppendAnnounce(nil, founding.Announce{To: n.ID(), Group: n.Cluster().Status().Group, At: 1 << 40, Voters: []founding.Voter{{Raft: 9, Instance: v.key.ID(), Addr: visitorAddr}}})
			if said, _, err := v.port.Ask(brief(t), address(0), nodeid.ID{}, news); len(said) > 0 {
				t.Errorf("%s: answered with %q, %v", rights, said, err)
			}
			v.bind(replica.Record{Instance: v.key.ID().String(), Name: "node-9", Rules: 1})
			if err := v.lock("k"); err == nil {
				t.Errorf("%s: a session was opened with the record of an instance", rights)
			}
			v.bind(replica.Record{Name: "node-9", Addr: visitorAddr})
			if err := v.lock("k"); err == nil {
				t.Errorf("%s: a session was opened with an address", rights)
			}
			v.bind(replica.Record{Name: "node-9"})
			time.Sleep(5 * time.Second)
			if err := v.lock("k"); err != nil {
				t.Errorf("%s: %v", rights, err)
			}
			all, err := f.nodes[0].Sessions(brief(t))
			if err != nil || !slices.ContainsFunc(all, func(s mortise.SessionInfo) bool { return s.Holder == "node-9 (for cron-host)" && s.Own }) {
				t.Errorf("%s: sessions %+v, %v", rights, all, err)
			}
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if n := v.dialed.Load(); n > 0 {
				t.Errorf("%s: it was dialed %d times", rights, n)
			}
			if h, err := f.nodes[0].Health(brief(t)); err != nil || h.Eligible != 3 {
				t.Errorf("%s: %+v, %v", rights, h, err)
			}
		})
	}
}

// withFounders makes the first three nodes the founders of a group with secretA.
func withFounders(c *mortise.Config) {
	c.Replicas, c.Founders, c.Secret, c.Insecure = 0, []string{"node-0", "node-1", "node-2"}, secretA, false
}

// TestAMemberLocksAndNeverVotes: a node with a member's secret beside three founders.
func TestAMemberLocksAndNeverVotes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withFounders)
		c := f.config(3, 3)
		withFounders(&c)
		c.Secret = derived(t, "member")
		m := f.start(3, c)
		if err := m.Ready(brief(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.net.Dialer("10.0.9.9")(t.Context(), address(3)); err == nil {
			t.Error("it listens")
		}
		l, err := m.LockAll(brief(t), "x", "y/z")
		if err != nil {
			t.Fatal(err)
		}
		var held *mortise.HeldError
		if _, err := f.nodes[0].TryLock(brief(t), "x"); !errors.As(err, &held) || held.Holder != "node-3 (for cron-host)" {
			t.Errorf("others see %v", err)
		}
		if _, err := m.Put(brief(t), "d", []byte("v"), 0); err != nil {
			t.Error(err)
		}
		if info, err := m.Peek(brief(t), "x"); err != nil || len(info.Queue) != 1 {
			t.Errorf("%+v, %v", info, err)
		}
		if all, err := m.Sessions(brief(t)); err != nil || len(all) != 4 {
			t.Errorf("%+v, %v", all, err)
		}
		if _, err := m.ForceUnlock(brief(t), "x", l.Token(), "r"); !errors.Is(err, mortise.ErrNotAllowed) {
			t.Errorf("force: %v", err)
		}
		if err := m.Recover(brief(t), m.Status().Group); !errors.Is(err, mortise.ErrNotAllowed) {
			t.Errorf("recover: %v", err)
		}
		s := m.Status()
		if s.Tier != mortise.TierMember || s.Votes || s.Address != "" || s.Phase != mortise.PhaseMember || len(s.Voters) != 3 || f.nodes[0].Status().Tier != mortise.TierRoot {
			t.Errorf("%+v", s)
		}
		f.close(f.follower()) // a place is free, and it does not take it
		time.Sleep(time.Minute)
		for i, n := range f.nodes[:3] {
			if n == nil {
				continue
			}
			for _, v := range n.Status().Voters {
				if v.Instance == s.Instance {
					t.Errorf("node %d has it as a voter", i)
				}
			}
			if h, err := n.Health(brief(t)); err != nil || h.Eligible != 2 {
				t.Errorf("%+v, %v", h, err)
			}
		}
		if m.Status().Votes || l.Err() != nil {
			t.Errorf("%+v, %v", m.Status(), l.Err())
		}
		unlock(t, l)
	})
}

// TestADerivedSecretDiesWithItsRoot: it is good as long as the root secret stands in Secret or OldSecrets, its session and lock included,
// and no longer.
func TestADerivedSecretDiesWithItsRoot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		v := f.visit(derived(t, "lock a/*"))
		v.bind(replica.Record{Name: "visitor"})
		var hold client.Hold
		if err := v.client.AcquireInto(brief(t), &hold, client.Request{Key: "a/1"}); err != nil {
			t.Fatal(err)
		}
		redeploy := func(change func(*mortise.Config)) {
			for i := range f.nodes {
				f.close(i)
				c := f.config(i, 3)
				change(&c)
				f.start(i, c)
				f.ready()
				v.client.SetTargets(voters(f.nodes[i]))
			}
			time.Sleep(5 * time.Second)
		}
		redeploy(withSecret(secretA, secretB))
		redeploy(withSecret(secretB, secretA))
		if err := hold.Err(); err != nil {
			t.Fatalf("the lock was lost while the secret was replaced: %v", err)
		}
		if a := v.desk(0, desk.Question{Op: desk.Peek, Key: "a/1"}); a.Error != "" {
			t.Errorf("%+v", a)
		}
		redeploy(withSecret(secretB))
		time.Sleep(10 * time.Second)
		if err := hold.Err(); !errors.Is(err, client.ErrLost) {
			t.Errorf("the lock of a dead secret: %v", err)
		}
		for i := range f.nodes {
			if _, _, err := v.port.Ask(brief(t), address(i), nodeid.ID{}, []byte(desk.Mark+"{}")); !errors.Is(err, transport.ErrForeign) {
				t.Errorf("node %d: %v", i, err)
			}
		}
		if l, err := f.nodes[0].TryLock(brief(t), "a/1"); err != nil {
			t.Errorf("its lock is not free: %v", err)
		} else {
			unlock(t, l)
		}
	})
}

// TestADerivedSecretEndsInTime: at its until the connection ends, and with it the session.
func TestADerivedSecretEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		c, err := capability.Build("cron-host", time.Now().Add(time.Hour), "lock a/*")
		if err != nil {
			t.Fatal(err)
		}
		secret, err := credentials.DeriveSecret(secretA, "mortise", c.Text())
		if err != nil {
			t.Fatal(err)
		}
		v := f.visit(secret)
		v.bind(replica.Record{Name: "visitor"})
		var hold client.Hold
		if err := v.client.AcquireInto(brief(t), &hold, client.Request{Key: "a/1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(c.Until()) - 5*time.Second)
		if hold.Err() != nil {
			t.Fatal(hold.Err())
		}
		time.Sleep(15 * time.Second)
		if err := hold.Err(); !errors.Is(err, client.ErrLost) {
			t.Errorf("past its end: %v", err)
		}
	})
}
