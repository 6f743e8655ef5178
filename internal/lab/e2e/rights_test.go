package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// visitor is a program with its own secret and without a node. It has real TLS, a real link, and a
// session.
type visitor struct {
	t      *testing.T
	fleet  *fleet
	key    nodeid.Key
	port   *transport.Port
	client *client.Client
	addr   string
	dialed atomic.Int64 // how often other processes have dialed the visitor's address
}

const (
	visitorHost = "10.0.9.9"
	visitorAddr = visitorHost + ":7947"
)

func (f *fleet) visit(secret string) *visitor {
	f.t.Helper()
	return f.visitFrom(visitorHost, secret)
}

func (f *fleet) visitFrom(host, secret string) *visitor {
	f.t.Helper()
	f.unjudged = true // the visitor records no history
	source, err := credentials.FromSecret(credentials.SecretConfig{Secret: secret, Cluster: "mortise", Now: time.Now})
	if err != nil {
		f.t.Fatal(err)
	}
	v := &visitor{t: f.t, fleet: f, key: nodeid.NewKey(realWorld().Random), addr: host + ":7947"}
	listener, err := f.net.Listen(v.addr)
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
		Cluster: "mortise", Self: transport.Self{Key: v.key, Addr: v.addr}, Listener: transport.Deaf(),
		Dial: f.net.Dialer(host),
		TLS:  source, Handler: v, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	v.client = client.New(client.Config{
		Clock: clock.Monotonic(), TTL: 2 * time.Second, Random: realWorld().Random,
		Send: func(to nodeid.Endpoint, renewals, commands []byte) error {
			return v.port.Send(to, transport.Frame{Renewals: renewals, Commands: commands})
		},
	})
	f.t.Cleanup(func() {
		v.client.Close()
		v.port.Close()
		listener.Close()
	})
	return v
}

func (v *visitor) bind(r replica.Record) {
	n := v.fleet.nodes[0]
	v.port.Identify(transport.Self{Key: v.key, Group: n.Cluster().Status().Group, Addr: v.addr})
	b, err := json.Marshal(r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.client.Rebind(b, voters(n))
}

func voters(n *node) (list []nodeid.Endpoint) {
	for _, v := range n.Cluster().Status().Voters {
		list = append(list, nodeid.Endpoint{ID: v.Instance, Addr: v.Addr})
	}
	return list
}

var errVisitor = errors.New("a visitor answers no questions")

func (v *visitor) Frame(from transport.Identity, f transport.Frame) {
	if len(f.Replies) > 0 {
		v.client.Receive(from.Instance, f.Replies)
	}
}
func (v *visitor) Down(from transport.Identity, _ error)                     { v.client.Down(from.Instance) }
func (v *visitor) MaySendSnapshot(transport.Identity, *raftpb.Message) error { return errVisitor }
func (v *visitor) Snapshot(transport.Identity, *raftpb.Message) error        { return errVisitor }

func (v *visitor) lock(keys ...string) error {
	v.t.Helper()
	keys = slices.Sorted(slices.Values(keys))
	r := client.Request{Key: keys[0], Try: true, Terms: &client.Terms{Keys: keys[1:]}}
	var hold client.Hold
	if err := v.client.AcquireInto(brief(v.t), &hold, &r); err != nil {
		return err
	}
	return hold.Release(brief(v.t))
}

func (v *visitor) admin(i int) query.AdminClient {
	return query.NewAdminClient(v.port.To(address(i), nodeid.ID{}))
}

// missing makes an admin call. It returns the error about the missing right, or nil if the call is
// allowed.
func missing[Q, A any](t *testing.T, client query.AdminClient, method queries.Method[query.AdminClient, Q, A],
	q *Q) *session.NotAllowedError {
	t.Helper()
	a, failed := asks(t, client, method, q)
	if failed == nil {
		return nil
	}
	denied, ok := errors.AsType[*session.NotAllowedError](failed)
	if !ok || failed.Kind != query.Failure_DENIED || a != nil {
		t.Errorf("%+v: %v, %v", q, failed, a)
	}
	return denied
}

// TestAGuestMayDoWhatItsTextSays tests every right and form of key, through the leader and through
// a follower.
func TestAGuestMayDoWhatItsTextSays(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		outside := f.lock(0, "b")
		single := f.lock(0, "a/single")
		both, err := f.nodes[0].LockAll(brief(t), "a/both", "zz-hidden")
		if err != nil {
			t.Fatal(err)
		}
		v := f.visit(derived(t, "lock a/*", "read r/*", "force a/both", "read a/both",
			"force a/single", "read a/single", "lock one"))
		v.bind(replica.Record{Name: "visitor", Guest: true})
		for key, ok := range map[string]bool{"a/x": true, "a/": true, "one": true, "a": false, "b": false,
			"one-more": false, "r/x": false, "A/x": false} {
			if err := v.lock(key); (err == nil) != ok || !ok && !errors.Is(err, mortise.ErrNotAllowed) {
				t.Errorf("lock %q: %v", key, err)
			}
		}
		if err := v.lock("a/x", "a/y", "one"); err != nil {
			t.Error(err)
		}
		var denied *session.NotAllowedError
		if err := v.lock("a/x", "b2"); !errors.As(err, &denied) || denied.Key != "b2" || denied.For != "cron-host" ||
			denied.Verb != "lock" {
			t.Error(err)
		}
		for _, i := range []int{f.leader(), f.follower()} {
			p := v.admin(i)
			key := func(key string) *query.KeyRequest { return &query.KeyRequest{Key: []byte(key)} }
			list := func(prefix string) *query.ListRequest { return &query.ListRequest{Prefix: []byte(prefix)} }
			evict := func(key string, token mortise.Token) *query.EvictRequest {
				return &query.EvictRequest{Key: []byte(key), Token: uint64(token), By: []byte("x"), Reason: []byte("r")}
			}
			// verb is the missing right. If verb is empty, the call is allowed.
			want := func(what, verb string, err *session.NotAllowedError) {
				if (err == nil) != (verb == "") || err != nil && (err.Verb != verb || err.For != "cron-host") {
					t.Errorf("node %d, %s: %+v, want %q", i, what, err, verb)
				}
			}
			for k, verb := range map[string]string{"a/x": "", "r/x": "", "one": "", "b": "read", "a": "read",
				"one-more": "read"} {
				want("peek "+k, verb, missing(t, p, query.AdminClient.Peek, key(k)))
			}
			for prefix, verb := range map[string]string{"r/": "", "r/a/b": "", "r": "read", "": "read", "a/": "read"} {
				want("list "+prefix, verb, missing(t, p, query.AdminClient.List, list(prefix)))
			}
			want("watch r/", "", missing(t, p, query.AdminClient.Watch, &query.WatchRequest{Prefixes: [][]byte{[]byte("r/")}}))
			want("watch b", "read", missing(t, p, query.AdminClient.Watch, &query.WatchRequest{Prefixes: [][]byte{[]byte("b")}}))
			want("watch", "read", missing(t, p, query.AdminClient.Watch, &query.WatchRequest{After: 1}))
			want("audit", "read", missing(t, p, query.AdminClient.Audit, &query.StateRequest{}))
			want("sessions", "read", missing(t, p, query.AdminClient.Sessions, &query.PageRequest{}))
			want("members", "read", missing(t, p, query.AdminClient.Members, &query.PageRequest{}))
			want("health", "read", missing(t, p, query.AdminClient.Health, &query.StateRequest{}))
			want("recover", "root", missing(t, p, query.AdminClient.Recover, &query.RecoverRequest{Group: "1"}))
			put := &query.PutRequest{Key: []byte("a/x"), Data: []byte("d"), Nonce: make([]byte, 16)}
			want("put", "write", missing(t, p, query.AdminClient.Put, put))
			// A claim of the program about its own rights does not count.
			put.Origin, put.Nonce[0] = &query.Origin{Rights: ""}, 1
			want("put as another", "write", missing(t, p, query.AdminClient.Put, put))
			want("evict b", "force", missing(t, p, query.AdminClient.Evict, evict("b", outside.Token())))
			want("evict a/x", "force", missing(t, p, query.AdminClient.Evict, evict("a/x", 1)))
			want("evict a hold of another key, too", "force",
				missing(t, p, query.AdminClient.Evict, evict("a/both", both.Token())))
			var s mortise.Status
			here, failed := asks(t, p, query.AdminClient.Here, &query.HereRequest{})
			if err := json.Unmarshal(here.GetStatus(), &s); err != nil || failed != nil ||
				here.Denied.GetVerb() != "read" || s.Group == "" || len(s.Voters) != 3 || s.Address != "" {
				t.Errorf("node %d shows a guest %+v, %v, %v", i, s, failed, err)
			}
			both, failed := asks(t, p, query.AdminClient.Peek, key("a/both"))
			peeked := keysOf(t, both, failed)
			if len(peeked) != 1 || peeked[0].Queue[0].Key != "a/both" ||
				!slices.Equal(peeked[0].Queue[0].Also, []mortise.Part{{}}) { // the other key is hidden
				t.Errorf("node %d shows %+v", i, peeked)
			}
		}
		if outside.Err() != nil || both.Err() != nil {
			t.Fatal("a guest has ended a hold")
		}
		q := &query.EvictRequest{Key: []byte("a/single"), Token: uint64(single.Token()), By: []byte("alice"),
			Reason: []byte("r")}
		if a, failed := asks(t, v.admin(f.follower()), query.AdminClient.Evict, q); failed != nil || !a.Held {
			t.Fatalf("%+v, %v", a, failed)
		}
		<-single.Done()
		if text := single.Err().Error(); !strings.Contains(text, "cron-host (instance "+v.key.ID().String()) ||
			!strings.Contains(text, `claims to be "alice"`) {
			t.Error(text)
		}
	})
}

// TestAGuestChangesOnlyItsOwnHold lets two programs with the same secret change the value of a
// hold, through the leader and through a follower. Only the program that has the hold can do it,
// whatever a question says about its origin.
func TestAGuestChangesOnlyItsOwnHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		secret := derived(t, "lock a/*")
		c, err := capability.Build("cron-host", time.Time{}, "lock a/*")
		if err != nil {
			t.Fatal(err)
		}
		mine, other := f.visit(secret), f.visitFrom("10.0.9.8", secret)
		mine.bind(replica.Record{Name: "mine", Guest: true})
		var hold client.Hold
		if err := mine.client.AcquireInto(brief(t), &hold, &client.Request{Key: "a/1"}); err != nil {
			t.Fatal(err)
		}
		instance := f.lock(0, "a/2")
		seq := uint64(0)
		change := func(v *visitor, i int, key string, token uint64, origin *query.Origin) lockfsm.Code {
			seq++
			a, failed := asks(t, v.admin(i), query.AdminClient.SetValue, &query.ValueRequest{Key: []byte(key), Token: token,
				Seq: seq, Value: fmt.Append(nil, seq), Origin: origin})
			if failed != nil {
				t.Fatal(failed)
			}
			return lockfsm.Code(a.Code)
		}
		token, id := uint64(hold.Token()), mine.key.ID()
		for _, i := range []int{f.leader(), f.follower()} {
			for _, origin := range []*query.Origin{nil, {Rights: c.Text(), Asker: id[:]}} {
				if code := change(mine, i, "a/1", token, origin); code != lockfsm.Done {
					t.Errorf("node %d, its own hold: %v", i, code)
				}
				want := fmt.Sprint(seq)
				for what, code := range map[string]lockfsm.Code{
					"of another program": change(other, i, "a/1", token, origin),
					"of an instance":     change(mine, i, "a/2", uint64(instance.Token()), origin),
					"with another token": change(mine, i, "a/1", token+1, origin),
					"of no lock":         change(mine, i, "a/3", token, origin),
				} {
					if code != lockfsm.NotHeld {
						t.Errorf("node %d, the value of a hold %s: %v", i, what, code)
					}
				}
				if q := f.peek(0, "a/1").Queue; len(q) != 1 || q[0].Value != want {
					t.Errorf("node %d: %+v, want the value %s", i, q, want)
				}
			}
			q := &query.ValueRequest{Key: []byte("b"), Token: token, Seq: 1, Origin: &query.Origin{}}
			if d := missing(t, mine.admin(i), query.AdminClient.SetValue, q); d == nil || d.Verb != "lock" || d.Key != "b" {
				t.Errorf("node %d, without the right: %+v", i, d)
			}
		}
	})
}

// TestRightsAreCheckedTwice checks that an instance refuses a call without asking a leader, and
// that the leader refuses a call that an instance has passed on.
func TestRightsAreCheckedTwice(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		c, err := capability.Build("cron-host", time.Time{}, "lock a/*")
		if err != nil {
			t.Fatal(err)
		}
		from := f.follower()
		n, under := f.nodes[from], &query.Origin{Rights: c.Text(), Asker: make([]byte, nodeid.Size)}
		under.Asker[0] = 1
		key := func(key string) *query.KeyRequest { return &query.KeyRequest{Origin: under, Key: []byte(key)} }
		list := func(prefix string) *query.ListRequest {
			return &query.ListRequest{Origin: under, Prefix: []byte(prefix)}
		}
		all, page := &query.StateRequest{Origin: under}, &query.PageRequest{Origin: under}
		forwarded := func(what string, err error) {
			if !errors.As(err, new(*session.NotAllowedError)) {
				t.Errorf("%s, forwarded: %v", what, err)
			}
		}
		forwarded("peek", looks(t, n, query.QueryClient.Peek, key("b")))
		forwarded("get", looks(t, n, query.QueryClient.Get, key("b")))
		forwarded("check", looks(t, n, query.QueryClient.Check, &query.HoldRequest{Origin: under, Key: []byte("b"),
			Token: 1}))
		forwarded("holders", looks(t, n, query.QueryClient.Holders,
			&query.HoldersRequest{Origin: under, Key: []byte("b")}))
		forwarded("list", looks(t, n, query.QueryClient.List, list("a/")))
		forwarded("walk", looks(t, n, query.QueryClient.Walk, list("")))
		forwarded("watch", looks(t, n, query.QueryClient.Watch,
			&query.WatchRequest{Origin: under, Prefixes: [][]byte{[]byte("b")}}))
		forwarded("put", looks(t, n, query.QueryClient.Put, &query.PutRequest{Origin: under, Key: []byte("a/x")}))
		forwarded("evict", looks(t, n, query.QueryClient.Evict, &query.EvictRequest{Origin: under, Key: []byte("a/x"),
			Token: 1, By: []byte("x")}))
		forwarded("ends", looks(t, n, query.QueryClient.Ends, all))
		forwarded("names", looks(t, n, query.QueryClient.Names, all))
		forwarded("sessions", looks(t, n, query.QueryClient.Sessions, page))
		forwarded("members", looks(t, n, query.QueryClient.Members, page))
		under.Rights = "everything"
		if err := looks(t, n, query.QueryClient.Peek, key("a/x")); err == nil {
			t.Error("rights that cannot be read")
		}
		v := f.visit(derived(t, "lock a/*"))
		for i := range f.nodes { // the remaining instances cannot elect a leader
			if i != from {
				f.close(i)
			}
		}
		time.Sleep(5 * time.Second)
		if missing(t, v.admin(from), query.AdminClient.Peek, &query.KeyRequest{Key: []byte("b")}) == nil {
			t.Error("without a leader it is allowed")
		}
	})
}

func looks[Q, A any](t *testing.T, n *node, method queries.Method[query.QueryClient, Q, A], q *Q) error {
	t.Helper()
	conn, err := n.Leader()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = queries.Ask(ctx, query.NewQueryClient(conn), method, q)
	return err
}

// TestAGuestIsNoInstance checks that no instance dials a guest. Requests that only instances may
// send must be refused if they come from a guest. The same must hold for a member.
func TestAGuestIsNoInstance(t *testing.T) {
	slow.UnderRace(t)
	for _, rights := range []string{"lock *", "member"} {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3, withSecret(secretA))
			v := f.visit(derived(t, rights))
			leads := v.port.To(address(f.leader()), nodeid.ID{})
			said, err := queries.Ask(brief(t), query.NewQueryClient(leads), query.QueryClient.Evict,
				&query.EvictRequest{Key: []byte("k"), Token: 1})
			if failed, ok := errors.AsType[*queries.Failed](err); err == nil || ok != (rights == "member") ||
				ok && failed.Kind != query.Failure_DENIED {
				t.Errorf("%s: a question of an instance is answered with %v, %v", rights, said, err)
			}
			if _, err := query.NewClusterClient(leads).Disks(brief(t), &query.DisksRequest{}); !errors.Is(err,
				transport.ErrSilent) {
				t.Errorf("%s: it asks for disks: %v", rights, err)
			}
			n := f.nodes[0]
			news := founding.AppendPush(nil, founding.Push{To: n.ID(), Group: n.Cluster().Status().Group,
				At: 1 << 40, Voters: []founding.Voter{{Raft: 9, Instance: v.key.ID(), Addr: visitorAddr}}})
			if said, _, err := queries.Found(brief(t), v.port.To(address(0), nodeid.ID{}), news); len(said) > 0 {
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
			if err != nil || !slices.ContainsFunc(all,
				func(s mortise.SessionInfo) bool { return s.Name == "node-9 (for cron-host)" && s.Instance == "" }) {
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

func withFounders(c *mortise.Config) {
	c.Replicas, c.Founders, c.Secret, c.Insecure = 0, []string{"node-0", "node-1", "node-2"}, secretA, false
}

func TestAMemberLocksAndNeverVotes(t *testing.T) {
	slow.UnderRace(t)
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
		if _, err := f.nodes[0].TryLock(brief(t), "x"); !errors.As(err, &held) ||
			held.Holder != "node-3 (for cron-host)" {
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
		if s.Tier != mortise.TierMember || s.Votes || s.Address != "" || !s.Joined ||
			len(s.Voters) != 3 || f.nodes[0].Status().Tier != mortise.TierRoot {
			t.Errorf("%+v", s)
		}
		f.close(f.follower()) // a voter is missing, and the member must not replace it
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

func TestADerivedSecretDiesWithItsRoot(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		v := f.visit(derived(t, "lock a/*"))
		v.bind(replica.Record{Name: "visitor"})
		var hold client.Hold
		if err := v.client.AcquireInto(brief(t), &hold, &client.Request{Key: "a/1"}); err != nil {
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
		if _, failed := asks(t, v.admin(0), query.AdminClient.Peek,
			&query.KeyRequest{Key: []byte("a/1")}); failed != nil {
			t.Error(failed)
		}
		redeploy(withSecret(secretB))
		time.Sleep(10 * time.Second)
		if err := hold.Err(); !errors.Is(err, client.ErrLost) {
			t.Errorf("the lock of a dead secret: %v", err)
		}
		for i := range f.nodes {
			if _, err := v.admin(i).Here(brief(t), &query.HereRequest{}); !errors.Is(err, transport.ErrForeign) {
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

func TestADerivedSecretEndsInTime(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		c, err := capability.Build("cron-host", time.Now().Add(2*time.Minute), "lock a/*")
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
		if err := v.client.AcquireInto(brief(t), &hold, &client.Request{Key: "a/1"}); err != nil {
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
