package guest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

const patience = 30 * time.Second

// town is a cluster of one instance, and the file that Join names.
type town struct {
	t     *testing.T
	peers string
	base  mortise.Config
}

func newTown(t *testing.T) *town {
	peers := filepath.Join(t.TempDir(), "peers")
	c := &town{t: t, peers: peers, base: mortise.Config{
		Name: "n", Bind: "127.0.0.1:0", Join: []string{"file://" + peers},
		Secret: "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c", Replicas: 1,
		SessionTTL: 2 * time.Second, Grace: -1,
		Logger: slog.New(slog.DiscardHandler),
	}}
	c.publish("")
	return c
}

func (c *town) publish(text string) {
	c.t.Helper()
	if err := os.WriteFile(c.peers, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *town) node() *mortise.Node {
	c.t.Helper()
	n, err := mortise.Start(c.t.Context(), c.base)
	if err != nil {
		c.t.Fatal(err)
	}
	c.publish(n.Status().Address + "\n")
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if err := n.Ready(ctx); err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *town) guest(change func(*mortise.Config)) *Guest {
	c.t.Helper()
	config := c.base
	config.Name, config.Replicas = "visitor", 0
	change(&config)
	g, err := Open(config)
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

// The next group is at another address.
func TestASessionGoesOverToTheNextGroup(t *testing.T) {
	c := newTown(t)
	first := c.node()
	g := c.guest(func(*mortise.Config) {})
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := g.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held, err := s.Acquire(ctx, mortise.Request{Key: "k", Value: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	var busy *mortise.HeldError
	if _, err := first.TryLock(ctx, "k"); !errors.As(err, &busy) || busy.Holder != "visitor" ||
		busy.Value != "mine" || busy.Token != held.Token() {
		t.Errorf("others see %v", err)
	}
	if _, err := s.Acquire(ctx, mortise.Request{Key: "k", Try: true}); !errors.As(err, &busy) ||
		busy.Holder != "visitor" {
		t.Errorf("it sees itself as %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := c.node()
	defer second.Close()
	select {
	case <-held.Done():
	case <-ctx.Done():
		t.Fatal("a lock outlives its group")
	}
	if err := held.Err(); !errors.Is(err, mortise.ErrLost) {
		t.Error(err)
	}
	next, err := s.Acquire(ctx, mortise.Request{Key: "k"})
	if err != nil || next.Token() <= held.Token() {
		t.Fatal(next, err)
	}
	if err := next.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := s.Acquire(ctx, mortise.Request{Key: "k"}); err == nil {
		t.Error("a closed session takes a lock")
	}
}

// The wait of a guest for a free lock of a new group ends with the reason that nothing is granted.
func TestAGuestIsToldOfTheGrace(t *testing.T) {
	c := newTown(t)
	c.base.Grace = 10 * time.Minute
	n, err := mortise.Start(t.Context(), c.base)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	c.publish(n.Status().Address + "\n")
	g := c.guest(func(*mortise.Config) {})
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := g.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	for err = nil; ctx.Err() == nil && (err == nil || !strings.Contains(err.Error(), "the group is in its grace")); {
		brief, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		if _, err = s.Acquire(brief, mortise.Request{Key: "k"}); !errors.Is(err, ErrNotReady) {
			t.Fatal(err)
		}
		stop()
	}
	if ctx.Err() != nil {
		t.Error(err)
	}
}

// A guest asks the instance that has answered it last, and looks for another one only if that one
// does not answer. A survey before each question would cost each instance a status.
func TestAPutGoesToTheInstanceThatAnsweredLast(t *testing.T) {
	c := newTown(t)
	first := c.node()
	g := c.guest(func(*mortise.Config) {})
	defer g.Close()
	peek := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := Put(ctx, g, query.AdminClient.Peek, &query.KeyRequest{Key: []byte("k")})
		return err
	}
	if err := peek(patience); err != nil {
		t.Fatal(err)
	}
	c.publish("127.0.0.1:1\n") // a survey would find no instance
	if err := peek(patience); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := peek(time.Second); !errors.Is(err, ErrNotReady) {
		t.Errorf("no instance runs: %v", err)
	}
	second := c.node()
	defer second.Close()
	if err := peek(patience); err != nil {
		t.Error(err)
	}
}

func TestGuestWithoutTheSecretGetsNothing(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	lock, err := n.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*mortise.Config){
		"another secret": func(c *mortise.Config) {
			c.Secret = "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0"
		},
		"another cluster": func(c *mortise.Config) { c.Cluster = "another" },
		"no secret":       func(c *mortise.Config) { c.Secret = "" },
	} {
		g := c.guest(change)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		addr := n.Status().Address
		if a, err := Ask(ctx, g, addr, query.AdminClient.Here, &query.HereRequest{}); err == nil {
			t.Errorf("%s: it is shown %+v", what, a)
		}
		if a, err := Ask(ctx, g, addr, query.AdminClient.List, &query.ListRequest{}); err == nil {
			t.Errorf("%s: it is listed %+v", what, a)
		}
		evict := &query.EvictRequest{Key: []byte("k"), Token: uint64(lock.Token()), By: []byte("x"),
			Reason: []byte("x")}
		if a, err := Ask(ctx, g, addr, query.AdminClient.Evict, evict); err == nil {
			t.Errorf("%s: it ends a hold: %+v", what, a)
		}
		if s, err := g.Session(ctx); err == nil || s != nil {
			t.Errorf("%s: gets a session", what)
		}
		cancel()
		// Put asks repeatedly. After each failure, the transport does not dial the address for some
		// time.
		ctx, cancel = context.WithTimeout(t.Context(), 700*time.Millisecond)
		if _, err := Put(ctx, g, query.AdminClient.List, &query.ListRequest{}); !errors.Is(err, transport.ErrForeign) {
			t.Errorf("%s: it is told %v", what, err)
		}
		cancel()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// The secret is like a secret from "mortise secret -allow".
func TestADerivedSecretLocksWhatItGrants(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	rights, err := capability.Build("cron-host", time.Time{}, "lock cron/*", "read cron/*")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credentials.DeriveSecret(c.base.Secret, "mortise", rights.Text())
	if err != nil {
		t.Fatal(err)
	}
	g := c.guest(func(c *mortise.Config) { c.Secret = secret })
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := g.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held, err := s.Acquire(ctx, mortise.Request{Key: "cron/a"})
	if err != nil {
		t.Fatal(err)
	}
	var denied *mortise.NotAllowedError
	want := mortise.NotAllowedError{Verb: "lock", Key: "other", For: "cron-host"}
	if _, err := s.Acquire(ctx, mortise.Request{Key: "other"}); !errors.As(err, &denied) || *denied != want ||
		!errors.Is(err, mortise.ErrNotAllowed) {
		t.Errorf("%v", err)
	}
	_, list := Put(ctx, g, query.AdminClient.List, &query.ListRequest{})
	_, audit := Put(ctx, g, query.AdminClient.Audit, &query.StateRequest{})
	_, evict := Put(ctx, g, query.AdminClient.Evict, &query.EvictRequest{Key: []byte("cron/a"),
		Token: uint64(held.Token()), By: []byte("x")})
	for what, err := range map[string]error{"list": list, "audit": audit, "evict": evict} {
		if !errors.As(err, &denied) || denied.For != "cron-host" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if a, err := Put(ctx, g, query.AdminClient.List, &query.ListRequest{Prefix: []byte("cron/")}); err != nil ||
		!strings.Contains(string(a.Keys), "visitor (for cron-host)") {
		t.Errorf("%s, %v", a.GetKeys(), err)
	}
	if held.Err() != nil {
		t.Error(held.Err())
	}
	if err := held.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestMistakesAreTold(t *testing.T) {
	for want, c := range map[string]mortise.Config{
		"Config.Join: is empty": {},
		"Config.Join[0]":        {Join: []string{"nonsense"}},
		"Config.Secret":         {Join: []string{"a:1"}, Secret: "short"},
		"not several": {Join: []string{"a:1"},
			Secret: "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0", Insecure: true},
		"Config.SessionTTL": {Join: []string{"a:1"}, SessionTTL: time.Millisecond},
	} {
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestPlainTextStaysOnThisMachine(t *testing.T) {
	g, err := Open(mortise.Config{Join: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for addr, want := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "192.0.2.1:1": true} {
		if _, err := g.dial(ctx, addr); errors.Is(err, errOpen) != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestAnUnansweredRecallIsNotReady(t *testing.T) {
	if err := new(Session).explain("k", client.ErrKept); !errors.Is(err, ErrNotReady) {
		t.Errorf("%v", err)
	}
}

// TestAGuestTakesEveryKind checks that a guest gets every kind of lock within its rights. A node of
// a tree needs the right for the nodes above it, too: an intention there keeps others waiting.
func TestAGuestTakesEveryKind(t *testing.T) {
	c := newTown(t)
	n := c.node()
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := func(allow ...string) *Session {
		t.Helper()
		rights, err := capability.Build("cron-host", time.Time{}, allow...)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := credentials.DeriveSecret(c.base.Secret, "mortise", rights.Text())
		if err != nil {
			t.Fatal(err)
		}
		g := c.guest(func(c *mortise.Config) { c.Secret = secret })
		t.Cleanup(func() { _ = g.Close() })
		s, err := g.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := begin("lock cron/*", "lock cron")
	take := func(r mortise.Request) *Lock {
		t.Helper()
		l, err := s.Acquire(ctx, r)
		if err != nil || l.Key() != r.Key {
			t.Fatalf("%+v: %v", r, err)
		}
		return l
	}
	leave := func(l *Lock) {
		t.Helper()
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
	}
	free := func(r mortise.Request) bool {
		t.Helper()
		r.Try = true
		l, err := n.Acquire(ctx, r)
		if err == nil {
			err = l.Unlock(ctx)
		} else if errors.Is(err, mortise.ErrHeld) {
			return false
		}
		if err != nil {
			t.Error(err)
		}
		return true
	}
	node := take(mortise.Request{Key: "cron/b", Tree: true, Also: []mortise.Part{{Key: "cron/a", Mode: mortise.Shared}}})
	if free(mortise.Request{Key: "cron/b/x", Mode: mortise.Shared, Tree: true}) || free(mortise.Request{Key: "cron/a"}) ||
		!free(mortise.Request{Key: "cron/c", Tree: true}) {
		t.Error("a node and a shared key exclude too little or too much")
	}
	if err := node.Downgrade(ctx); err != nil {
		t.Error(err)
	}
	if !free(mortise.Request{Key: "cron/b/x", Mode: mortise.Shared, Tree: true}) ||
		free(mortise.Request{Key: "cron/b/x", Tree: true}) {
		t.Error("a node that was made shared")
	}
	leave(node)
	for _, resumed := range []bool{false, true} {
		root := take(mortise.Request{Key: "cron", Tree: true, LockDelay: time.Minute}) // for the group it is a key
		if resumed {
			var err error
			if root, err = s.Resume(ctx, "cron", root.Token(), mortise.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := root.Downgrade(ctx); err != nil || free(mortise.Request{Key: "cron/x", Tree: true}) {
			t.Errorf("a root that was made shared, resumed %v: %v", resumed, err)
		}
		leave(root)
	}
	permits := take(mortise.Request{Key: "cron/p", Mode: mortise.Permits(2, 3)})
	if !free(mortise.Request{Key: "cron/p", Mode: mortise.Permits(1, 3)}) ||
		free(mortise.Request{Key: "cron/p", Mode: mortise.Permits(2, 3)}) {
		t.Error("two permits of three")
	}
	leave(permits)
	short := take(mortise.Request{Key: "cron/a", MaxHold: 50 * time.Millisecond, JeopardyGrace: time.Minute})
	<-short.Done()
	if err := short.Err(); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("after MaxHold: %v", err)
	}
	idle := take(mortise.Request{Key: "cron/i", Mode: mortise.Upgradable, MaxIdle: 200 * time.Millisecond})
	up, err := idle.Upgrade(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 600*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		up.Beat()
	}
	if err := idle.Err(); err != nil {
		t.Errorf("while its upgrade beats: %v", err)
	}
	<-idle.Done()
	if err := idle.Err(); !errors.Is(err, mortise.ErrLost) || !errors.Is(up.Err(), mortise.ErrLost) {
		t.Errorf("after MaxIdle: %v, %v", err, up.Err())
	}
	for range 2 {
		l, err := s.LockSticky(ctx, "cron/s", mortise.StickyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Downgrade(ctx); !errors.Is(err, mortise.ErrBadRequest) || l.Err() != nil {
			t.Errorf("Downgrade of a sticky lock: %v, %v", err, l.Err())
		}
		leave(l)
	}
	if info, err := n.Peek(ctx, "cron/s"); err != nil || len(info.Queue) != 1 || !info.Queue[0].Kept {
		t.Errorf("a sticky lock: %+v, %v", info, err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	s = begin("lock cron/b")
	leave(take(mortise.Request{Key: "cron/b"}))
	if _, err := s.Acquire(ctx, mortise.Request{Key: "cron/b", Tree: true}); !errors.Is(err, mortise.ErrNotAllowed) ||
		!strings.Contains(err.Error(), `"cron"`) {
		t.Errorf("a node without the right for the node above: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestPlacesNameWhatLeadsNowhere checks which entries of Join and JoinFunc are reported, and where
// each address comes from.
func TestPlacesNameWhatLeadsNowhere(t *testing.T) {
	var found []string
	var failed error
	g, err := Open(mortise.Config{Join: []string{"127.0.0.1:1", "127.0.0.1:2"},
		JoinFunc: func(context.Context) ([]string, error) { return found, failed }})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, c := range []struct {
		found  []string
		failed error
		want   string // in the only error; empty means that there is none
		places []string
	}{
		{[]string{"127.0.0.1:2", "127.0.0.1:3"}, nil, "", []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}},
		{nil, nil, "Config.JoinFunc resolves to no address", []string{"127.0.0.1:1", "127.0.0.1:2"}},
		{nil, errors.New("no answer"), "Config.JoinFunc cannot be looked up: no answer",
			[]string{"127.0.0.1:1", "127.0.0.1:2"}},
	} {
		found, failed = c.found, c.failed
		places, errs := g.Places(t.Context())
		if (len(errs) == 1) != (c.want != "") || len(errs) > 1 || len(errs) == 1 && errs[0].Error() != c.want {
			t.Errorf("with %q: %q, want %q", c.found, errs, c.want)
		}
		var addrs []string
		for _, p := range places {
			addrs = append(addrs, p.Addr)
			if want := map[bool]string{true: "Config.JoinFunc", false: p.Addr}[p.Addr == "127.0.0.1:3"]; p.From != want {
				t.Errorf("%s comes from %s, want %s", p.Addr, p.From, want)
			}
		}
		if !slices.Equal(addrs, c.places) {
			t.Errorf("with %q the places are %q, want %q", c.found, addrs, c.places)
		}
	}
}

// TestNoHoldHasSuchAToken resumes holds that cannot exist. The session without a client shows that
// nothing is asked.
func TestNoHoldHasSuchAToken(t *testing.T) {
	for _, token := range []mortise.Token{0, 1 << 63, 1<<64 - 1} {
		_, err := new(Session).Resume(t.Context(), "k", token, mortise.ResumeOptions{})
		if !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("token %d: %v", token, err)
		}
	}
}
