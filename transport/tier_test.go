package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func (s static) Peer(tls.ConnectionState) (capability.Peer, error) {
	return capability.Peer{Tier: capability.Root}, nil
}

func (s static) Recheck(tls.ConnectionState) error { return nil }

// tiered is a Security that returns the given rights or error for each peer.
type tiered struct {
	static
	peer    atomic.Pointer[capability.Peer]
	refusal atomic.Pointer[error]
	checked atomic.Int64
}

func (s *tiered) Peer(tls.ConnectionState) (capability.Peer, error) { return *s.peer.Load(), nil }

func (s *tiered) Recheck(tls.ConnectionState) error {
	s.checked.Add(1)
	if err := s.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

func (a *authority) sees(peer capability.Peer, into **tiered) func(*Config) {
	return func(c *Config) {
		a.use(c)
		s := &tiered{static: c.TLS.(static)}
		s.peer.Store(&peer)
		c.TLS, *into = s, s
	}
}

func guestOf(t *testing.T, rights ...string) capability.Peer {
	c, err := capability.Build("cron-host", time.Time{}, rights...)
	if err != nil {
		t.Fatal(err)
	}
	return capability.Peer{Tier: capability.TierOf(c), Capability: c, Name: c.For()}
}

// The node dials an admin client whose certificate is from the same authority.
func TestWhatIsDialedMustBeAnInstance(t *testing.T) {
	for _, tier := range []capability.Peer{guestOf(t, "lock a/*"), guestOf(t, "member"), {}} {
		inBubble(t, func(t *testing.T, w *world) {
			ours, s := newAuthority(t), new(*tiered)
			a, b := w.node("a", 1, ours.sees(tier, s)), w.node("b", 2, ours.use)
			if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrForeign) ||
				!strings.Contains(err.Error(), "serve") {
				t.Errorf("a question: %v", err)
			}
			a.anew()
			a.send(b, "x")
			b.wantCommands("a link", a, "")
			a.anew()
			if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)); !errors.Is(err, ErrForeign) {
				t.Errorf("a snapshot: %v", err)
			}
			if tier.Tier != 0 && !strings.Contains(a.log.String(), `the `+tier.Tier.String()) {
				t.Error(a.log)
			}
		})
	}
}

func TestAGuestIsKnownAsOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ours, s, want := newAuthority(t), new(*tiered), guestOf(t, "lock a/*")
		a, b := w.node("a", 1, ours.use), w.node("b", 2, ours.sees(want, s))
		var asked Identity
		b.ask = func(_ context.Context, from Identity, _ []byte) ([]byte, error) { asked = from; return nil, nil }
		if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); err != nil || asked.Peer != want ||
			asked.Addr != "" || asked.Raft != 0 {
			t.Errorf("asked by %+v, %v", asked, err)
		}
		a.send(b, "x")
		_ = a.Send(b.peer(), Frame{Raft: []*raftpb.Message{raftMessage(a, b, 1)}, Retired: true, Replies: []byte("r"),
			Renewals: []byte("n")})
		synctest.Wait()
		a.self.Addr, a.self.Raft = "elsewhere:1", 9
		a.identify()
		a.send(b, "y")
		synctest.Wait()
		text := ""
		for _, e := range b.seen() {
			f := e.frame
			if e.from.Peer != want || e.from.Addr != "" || e.from.Raft != 0 || len(f.Raft) > 0 || f.Retired ||
				len(f.Replies) > 0 {
				t.Errorf("%+v", e)
			}
			text += string(f.Commands)
		}
		if text != "xy" {
			t.Errorf("commands %q", text)
		}
		if met, ok := b.Met(id(1)); !ok || met.Peer != want || met.Addr != "" {
			t.Errorf("met %+v, %v", met, ok)
		}
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 10)); err == nil || len(b.snapshots) > 0 {
			t.Errorf("a snapshot: %v", err)
		}
		if _, err := a.Gossip().DialStream(t.Context(), "b:1"); err == nil {
			t.Error("a gossip stream was opened")
		}
		_ = a.Gossip().WriteTo([]byte("p"), "b:1")
		synctest.Wait()
		if len(b.Gossip().Packets()) > 0 {
			t.Error("a packet was accepted")
		}
	})
}

func TestConnectionsEndWithTheirCertificate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ours, s := newAuthority(t), new(*tiered)
		ends := time.Now().Add(90 * time.Second)
		a := w.node("a", 1, ours.sees(capability.Peer{Tier: capability.Root, NotAfter: ends}, s))
		b, c := w.node("b", 2, ours.use), w.node("c", 3, ours.use)
		a.send(b, "x")
		c.send(a, "y")
		if _, _, err := c.Ask(t.Context(), "a:1", id(1), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(ends) - time.Second)
		synctest.Wait()
		if n := a.Counts(); n.Links != 2 {
			t.Fatalf("a connection has ended too early: %+v", n)
		}
		a.seen()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := a.Counts(); n.Links != 0 || n.Accepted != 0 {
			t.Errorf("%+v", n)
		}
		downs := 0
		for _, e := range a.seen() {
			if e.down != nil {
				downs++
			}
		}
		if downs != 2 {
			t.Errorf("%d downs", downs)
		}
		if len(a.guard.conns) != 0 {
			t.Errorf("%d connections are left with the guard", len(a.guard.conns))
		}
	})
}

func TestConnectionsAreCheckedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ours, s := newAuthority(t), new(*tiered)
		a := w.node("a", 1, ours.sees(capability.Peer{Tier: capability.Root}, s))
		b, c := w.node("b", 2, ours.use), w.node("c", 3, ours.use)
		a.send(b, "x")
		c.send(a, "y")
		time.Sleep(3 * recheckEvery)
		synctest.Wait()
		if n := a.Counts(); n.Links != 2 || (*s).checked.Load() < 4 {
			t.Fatalf("%+v after %d checks", n, (*s).checked.Load())
		}
		withdrawn := errors.New("its name is in no list")
		(*s).refusal.Store(&withdrawn)
		time.Sleep(recheckEvery)
		synctest.Wait()
		if n := a.Counts(); n.Links != 0 {
			t.Errorf("%+v", n)
		}
		if a.warnings("no longer accepted", "in no list") == 0 {
			t.Error(a.log)
		}
	})
}
