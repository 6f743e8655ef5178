package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// guest returns a bound visitor with a derived secret.
func (f *fleet) guest(host string, rights ...string) *visitor {
	f.t.Helper()
	v := f.visitFrom(host, derived(f.t, rights...))
	v.bind(replica.Record{Name: "visitor", Guest: true})
	return v
}

func (v *visitor) acquire(key string, terms client.Terms) (*client.Hold, error) {
	v.t.Helper()
	hold := new(client.Hold)
	err := v.client.AcquireInto(brief(v.t), hold, &client.Request{Key: key, Terms: &terms})
	return hold, err
}

// refused fails the test unless err says that the right verb is missing.
func refused(t *testing.T, what, verb string, err error) {
	t.Helper()
	var denied *session.NotAllowedError
	if !errors.As(err, &denied) || denied.Verb != verb {
		t.Errorf("%s: %v, want no right to %s", what, err, verb)
	}
}

// A guest can neither resume nor end a hold of which it may lock only some keys, and without force
// neither a guest nor a member can resume the hold of a running program. Nothing changes.
func TestALiveHoldIsTakenOverOnlyWithForce(t *testing.T) {
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
		both, err := f.nodes[0].LockAll(brief(t), "a/x", "b")
		if err != nil {
			t.Fatal(err)
		}
		one := f.lock(0, "c")
		v := f.guest(visitorHost, "lock a/*", "force a/*", "read a/*", "lock c", "read c")
		_, err = v.acquire("a/x", client.Terms{Resume: lockfsm.Token(both.Token())})
		refused(t, "resumption by a guest with one of two keys", "lock", err)
		_, err = v.acquire("c", client.Terms{Resume: lockfsm.Token(one.Token())})
		refused(t, "resumption by a guest without force", "force", err)
		denied := missing(t, v.admin(f.follower()), query.AdminClient.Evict, &query.EvictRequest{Key: []byte("a/x"),
			Token: uint64(both.Token()), By: []byte("x"), Reason: []byte("r")})
		if denied == nil || denied.Verb != "force" || denied.Key != "" {
			t.Errorf("forced end by a guest with one of two keys: %+v", denied)
		}
		for key, token := range map[string]mortise.Token{"a/x": both.Token(), "b": both.Token(), "c": one.Token()} {
			_, err := m.Resume(brief(t), key, token, mortise.ResumeOptions{})
			wantIs(t, err, mortise.ErrNotAllowed)
			if info := f.peek(0, key); len(info.Queue) != 1 || info.Queue[0].Token != token {
				t.Errorf("%s: %+v", key, info)
			}
		}
		time.Sleep(5 * time.Second)
		if events, err := f.nodes[0].Audit(brief(t)); err != nil || len(events) > 0 || both.Err() != nil || one.Err() != nil {
			t.Errorf("%+v, %v, %v, %v", events, err, both.Err(), one.Err())
		}
	})
}

// A guest that was restarted takes its own hold over, although its former session has not ended.
// Another secret cannot, until that session has ended.
func TestARestartedGuestTakesItsHoldOver(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		first := f.guest(visitorHost, "lock a/*", "lock b")
		other := f.guest("10.0.9.10", "lock a/*")
		second := f.guest("10.0.9.11", "lock a/*", "lock b")
		hold, err := first.acquire("a/x", client.Terms{Delay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.acquire("a/x", client.Terms{Resume: hold.Token()})
		refused(t, "resumption under another secret", "force", err)
		taken, err := second.acquire("a/x", client.Terms{Resume: hold.Token()})
		if err != nil || taken.Token() <= hold.Token() {
			t.Fatal(taken.Token(), err)
		}
		time.Sleep(time.Second)
		if hold.Err() == nil {
			t.Error("both have it")
		}
		events, err := f.nodes[0].Audit(brief(t))
		if err != nil || len(events) != 1 || events[0].By == "" {
			t.Errorf("the audit log has %+v, %v", events, err)
		}
		second.client.Close()
		second.port.Close()
		time.Sleep(10 * time.Second) // the session has expired, and the delay keeps the hold
		info := f.peek(0, "a/x")
		if len(info.Queue) != 1 {
			t.Fatalf("%+v", info)
		}
		if _, err := other.acquire("a/x", client.Terms{Resume: lockfsm.Token(info.Queue[0].Token)}); err != nil {
			t.Error(err)
		}
	})
}
