//go:build linux

// Package attackers contains the attacks of the campaign in internal/lab/proctest/attack. They run
// in a process of their own, which knows a [plan.Plan].
//
// A kind of attack makes attempts one after the other on one or more goroutines. Each returns a
// [Tally]. An attempt is believed if the other side did what the attacker has no right to.
//
// Concurrency: Run is called once. Failure: attempts that fail count as refused. Limits: the
// attacker knows nothing of what its attacks cost others.
package attackers

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"google.golang.org/protobuf/proto"

	cryptorand "crypto/rand"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Tally counts what an attack has tried.
type Tally struct {
	Tried, Refused, Believed int64
	Open                     int64 // connections that the attack had open at once, at most
}

// known is the data in the hello that an instance sends to every client.
type known struct {
	addr  string
	hello *wire.Hello
	said  *wire.Greeting // greeting of the instance on another connection
}

type attacker struct {
	length  time.Duration // of the campaign
	plan    plan.Plan
	speaker *attack.Speaker
	targets []known
	guests  map[string]*attack.Speaker // by the name of the derived secret
	led     atomic.Int32               // index of the target that led when a session was last opened

	mu     sync.Mutex         // guards honest
	honest map[string]*honest // by the name of the derived secret
}

// honest is a guest that sends what an honest client sends.
type honest struct {
	mu sync.Mutex // guards the opening
	*guest.Guest
	*guest.Session
}

// prepare makes an attacker that knows the hello of each instance, for a campaign of that length.
func prepare(ctx context.Context, p plan.Plan, length time.Duration) (*attacker, error) {
	a := &attacker{length: length, plan: p, guests: map[string]*attack.Speaker{}, honest: map[string]*honest{}}
	var err error
	if a.speaker, err = speakerOf(p.Secret); err != nil {
		return nil, err
	}
	for name, secret := range p.Derived {
		if a.guests[name], err = speakerOf(secret); err != nil {
			return nil, err
		}
	}
	for _, addr := range p.Addrs {
		k, err := a.meet(ctx, addr)
		if err != nil {
			return nil, fmt.Errorf("meet %s: %w", addr, err)
		}
		a.targets = append(a.targets, k)
	}
	return a, nil
}

func speakerOf(secret string) (*attack.Speaker, error) {
	source, err := credentials.FromSecret(credentials.SecretConfig{
		Secret: secret, Cluster: plan.Cluster, Now: time.Now, Random: random,
	})
	if err != nil {
		return nil, err
	}
	return &attack.Speaker{Label: plan.Cluster, Dial: dial, TLS: source.ClientTLS}, nil
}

// dial connects from another address than the instances and the legitimate clients have, because an
// attacker is another machine.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}
	return d.DialContext(ctx, "tcp", addr)
}

func random(b []byte) { _, _ = cryptorand.Read(b) } // crypto/rand never returns an error

func (a *attacker) meet(ctx context.Context, addr string) (known, error) {
	c, answer, err := a.enter(ctx, addr, nodeid.NewKey(random), wire.Hello_CALLS, nil)
	if err != nil {
		return known{}, err
	}
	defer c.Close()
	k := known{addr: addr, hello: &wire.Hello{}, said: answer}
	return k, proto.Unmarshal(answer.Hello, k.hello)
}

// enter connects with an identity that the attacker has made. It returns an error if the target
// refuses the connection.
func (a *attacker) enter(ctx context.Context, addr string, key nodeid.Key, kind wire.Hello_Kind,
	change func(*wire.Hello)) (*attack.Conn, *wire.Greeting, error) {
	return enterAs(ctx, a.speaker, addr, key, kind, change)
}

func enterAs(ctx context.Context, by *attack.Speaker, addr string, key nodeid.Key, kind wire.Hello_Kind,
	change func(*wire.Hello)) (*attack.Conn, *wire.Greeting, error) {
	c, err := by.Open(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	answer, err := c.Greet(attack.Sign(key, c.Binding, by.Hello(key, kind, change)))
	if err == nil && answer.Refusal != nil {
		err = fmt.Errorf("refused: %s", answer.Refusal.Text)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, answer, nil
}

// join opens a link to the target, in the target's group.
func (a *attacker) join(ctx context.Context, target known, key nodeid.Key, raft uint64) (*attack.Conn, error) {
	return joinAs(ctx, a.speaker, target, key, raft)
}

func joinAs(ctx context.Context, by *attack.Speaker, target known, key nodeid.Key, raft uint64) (*attack.Conn, error) {
	c, _, err := enterAs(ctx, by, target.addr, key, wire.Hello_LINK, func(h *wire.Hello) {
		h.Group, h.Raft = target.hello.Group, raft
	})
	return c, err
}

func (a *attacker) others(target known) []known {
	return slices.DeleteFunc(slices.Clone(a.targets), func(k known) bool { return k.addr == target.addr })
}

func refused(err error) Tally {
	if err != nil {
		return Tally{Tried: 1, Refused: 1}
	}
	return Tally{Tried: 1}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
