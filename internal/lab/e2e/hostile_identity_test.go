package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// In TestHostileImpostors an attacker dials every instance in the name of every other instance, and
// keeps the connections open.
func TestHostileImpostors(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, everySecurity(), func(a *assault) {
		a.join(3)
		var held []*mortise.Lock
		for i := range a.nodes {
			held = append(held, a.lock(i, "held by "+address(i)))
		}
		a.attack(7*time.Second, func() { // three and a half leases
			for victim := range a.nodes {
				for at := range a.nodes {
					if at != victim {
						a.impersonate(victim, at)
					}
				}
			}
		})
		for i, l := range held {
			if err := l.Err(); err != nil {
				t.Errorf("node %d has lost its lock: %v", i, err)
			}
			unlock(a.t, l)
		}
		a.nothingLeft()
	})
}

// secretsOf returns what a former voter knows about the session of an instance.
func (a *assault) secretsOf(i int) lockfsm.SessionInfo {
	a.t.Helper()
	synctest.Wait()
	r := a.nodes[a.leader()].Replica()
	info, ok := r.Core.Machine().Session(a.nodes[i].Client.Status().Session)
	if !ok {
		a.t.Fatalf("node %d has no session", i)
	}
	return info
}

// In TestHostileTheftOfASession an attacker uses the holder's session, epoch and nonce. The holder
// must keep its lock for three leases.
func TestHostileTheftOfASession(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, everySecurity(), func(a *assault) {
		leader := a.leader()
		holder := (leader + 1) % 3
		waiter := (leader + 2) % 3
		mine := a.lock(holder, "k")
		granted := make(chan *mortise.Lock, 1)
		go func() {
			if l, err := a.nodes[waiter].Lock(a.t.Context(), "k"); err == nil {
				granted <- l
			} else if !errors.Is(err, context.Canceled) {
				a.t.Error(err)
			}
			close(granted)
		}()
		time.Sleep(time.Second)
		known := a.secretsOf(holder)
		h := newHostileWith(a.fleet, 0, a.security)
		defer h.Close()
		a.attack(7*time.Second, func() {
			a.impersonate(leader, holder)
			a.lure(h, holder)
			a.steal(h, leader, known)
		})
		if err := mine.Err(); err != nil {
			a.t.Errorf("the holder has lost its lock: %v", err)
		}
		select {
		case <-granted:
			a.t.Error("the waiter was granted the lock of the holder")
		default:
		}
		if n := h.heard.Load(); n != 0 {
			a.t.Errorf("the attacker was sent %d bytes of commands, as if it led", n)
		}
		if after := a.secretsOf(holder); after.Epoch != known.Epoch || after.Opener != known.Opener {
			a.t.Errorf("the session was %+v and is %+v", known, after)
		}
		unlock(a.t, mine)
		if l := <-granted; l != nil {
			unlock(a.t, l)
		}
		_ = h.Close()
		a.nothingLeft()
	})
}

// lure tells an instance, under the attacker's own ID, that the attacker is the leader.
func (a *assault) lure(h *hostile, at int) {
	self := h.id.Instance()
	lure := append(uvarints(8, 1<<40), self[:]...)
	lure = append(append(lure, uvarints(uint64(len(h.id.Addr)))...), h.id.Addr...)
	to := nodeid.Endpoint{ID: a.nodes[at].ID(), Addr: address(at)}
	for range 5 {
		_ = h.Send(to, transport.Frame{Replies: sized(lure)})
		synctest.Wait()
	}
}

// steal sends to the leader, under the attacker's own ID, messages that only the owner of a session
// may send.
func (a *assault) steal(h *hostile, leader int, s lockfsm.SessionInfo) {
	to := nodeid.Endpoint{ID: a.nodes[leader].ID(), Addr: address(leader)}
	say := func(f transport.Frame) {
		_ = h.Send(to, f)
		synctest.Wait()
		time.Sleep(50 * time.Millisecond)
	}
	for _, epoch := range []lockfsm.Epoch{s.Epoch + 1, s.Epoch, s.Epoch + 1<<20} {
		attach := lockfsm.Command{Kind: lockfsm.Attach, Session: s.ID, Epoch: epoch, Number: 1 << 20, Nonce: s.Nonce}
		say(transport.Frame{Commands: attach.Append(nil), Renewals: uvarints(uint64(s.ID), uint64(epoch), 1, 0)})
		for number := range lockfsm.Number(8) {
			for _, kind := range []lockfsm.Kind{lockfsm.Release, lockfsm.Cancel, lockfsm.Detach} {
				c := lockfsm.Command{Kind: kind, Session: s.ID, Epoch: epoch, Number: number}
				say(transport.Frame{Commands: c.Append(nil), Renewals: uvarints(uint64(s.ID), uint64(epoch),
					uint64(number)+2, 0)})
			}
		}
	}
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: s.Nonce, TTL: time.Hour}
	say(transport.Frame{Commands: open.Append(nil)})
	end := lockfsm.Command{Kind: lockfsm.Close, Session: s.ID, Epoch: s.Epoch}
	say(transport.Frame{Commands: end.Append(nil)})
}

// In TestHostileRelay an attacker relays the greeting of a new instance to the members, byte by
// byte. The members must refuse the greeting.
func TestHostileRelay(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, everySecurity(), func(a *assault) {
		l, err := a.net.Listen("10.0.0.66:7947")
		if err != nil {
			a.t.Fatal(err)
		}
		relayed := make(chan string, 100)
		go func() {
			for {
				raw, err := l.Accept()
				if err != nil {
					close(relayed)
					return
				}
				relayed <- a.relay(raw)
				raw.Close()
			}
		}()
		c := a.config(3, 3)
		a.configure(&c)
		c.Join = append(c.Join, "10.0.0.66:7947")
		a.start(3, c)
		a.attack(5*time.Second, func() { a.ready() })
		_ = l.Close()
		some := 0
		for what := range relayed {
			if some++; what != "" {
				a.t.Error(what)
			}
		}
		if some == 0 {
			a.t.Error("the new instance has not spoken to the attacker: nothing was tested")
		}
		if !a.warned(a.nodes[3].ID().String(), "10.0.0.66:") {
			a.t.Error("no instance has logged the claim")
		}
	})
}

// relay passes a dialer's greeting on to every member. It returns a description of the result, or
// "" if every member refuses the greeting.
func (a *assault) relay(raw net.Conn) string {
	var server *tls.Config
	if a.security != nil {
		server = a.security.ServerTLS()
	}
	_, said, err := attack.Accept(raw, server)
	if err != nil {
		return "" // the dialer has closed the connection
	}
	for at := range 3 {
		c, err := a.speaker.Open(a.t.Context(), address(at))
		if err != nil {
			return err.Error()
		}
		answer, err := c.Greet(said)
		c.Close()
		if err != nil || answer.Refusal.GetReason() != wire.Refusal_MALFORMED {
			return fmt.Sprintf("node %d believes in a relayed greeting: %v, %v", at, answer, err)
		}
	}
	return ""
}
