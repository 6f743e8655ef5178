//go:build linux

package attackers

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// raw is a session of a guest that sends any commands. It discards all answers except the first.
type raw struct {
	c        *attack.Conn
	id       lockfsm.SessionID
	nonce    lockfsm.Nonce
	epoch    lockfsm.Epoch
	next     lockfsm.Number
	renewals uint64
	ended    chan struct{} // closed when the other side has ended the link
	until    time.Time     // when the preparation ends
}

const (
	batch  = 500              // commands in one frame
	rawTTL = 10 * time.Second // of a raw session
)

var errNotOpened = errors.New("no instance has opened the session")

// session opens a session of a derived secret at the leader, and attaches to it.
func (a *attacker) session(ctx context.Context, name string) (*raw, error) {
	for n := range a.targets {
		at := (int(a.led.Load()) + n) % len(a.targets)
		c, err := joinAs(ctx, a.guests[name], a.targets[at], nodeid.NewKey(random), 0)
		if err != nil {
			continue
		}
		s := &raw{c: c, nonce: newNonce(), ended: make(chan struct{})}
		err = commands(c, lockfsm.Command{Kind: lockfsm.Open, Nonce: s.nonce, TTL: rawTTL})
		if err == nil {
			s.id = lockfsm.SessionID(c.Opened(s.nonce, time.Second))
		}
		if s.id == 0 {
			c.Close()
			continue
		}
		a.led.Store(int32(at))
		go func() {
			defer close(s.ended)
			c.Drain()
		}()
		s.next = 1
		return s, s.attach(1)
	}
	return nil, errNotOpened
}

// attach sends an Attach of the next n epochs. Each names all numbers that the session has used.
func (s *raw) attach(n int) error {
	var all []lockfsm.Command
	for range n {
		s.epoch++
		c := lockfsm.Command{Kind: lockfsm.Attach, Session: s.id, Epoch: s.epoch, Number: s.next, Nonce: s.nonce}
		if s.next > 1 {
			c.Live = []lockfsm.Range{{First: 1, Last: s.next - 1}}
		}
		all = append(all, c)
	}
	return s.send(all)
}

func (s *raw) send(all []lockfsm.Command) error {
	for len(all) > 0 {
		n := min(batch, len(all))
		if err := commands(s.c, all[:n]...); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// acquire requests n locks with the terms of c.
func (s *raw) acquire(n int, c lockfsm.Command) error {
	all := make([]lockfsm.Command, n)
	for i := range all {
		c.Kind, c.Session, c.Epoch, c.Number = lockfsm.Acquire, s.id, s.epoch, s.next
		all[i] = c
		s.next++
	}
	return s.send(all)
}

// renew asks for another TTL. It claims that the answer to the previous renewal has arrived.
func (s *raw) renew() error {
	s.renewals++
	b := session.Renewal{Session: s.id, Epoch: s.epoch, Seq: s.renewals, Heard: s.renewals - 1}.Append(nil)
	return s.c.Frame(attack.Field("renewals", b))
}

func (s *raw) close() {
	_ = commands(s.c, lockfsm.Command{Kind: lockfsm.Close, Session: s.id, Epoch: s.epoch})
	s.c.Close()
	<-s.ended
}
