//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise/internal/attack"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"google.golang.org/protobuf/proto"

	cryptorand "crypto/rand"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type tally struct {
	Tried, Refused, Believed int64
}

// known is the data in the hello that an instance sends to every client.
type known struct {
	addr  string
	hello *wire.Hello
	said  *wire.Greeting // greeting of the instance on another connection
}

type attacker struct {
	speaker *attack.Speaker
	targets []known

	mu  sync.Mutex // guards the fields below
	all map[string]tally
}

// kind is one kind of attack. The function `each` makes one attempt and returns the tally.
type kind struct {
	name  string
	lanes int           // number of goroutines that run the attack
	pause time.Duration // time between two attempts of a goroutine
	each  func(a *attacker, ctx context.Context, target known) tally
}

func attacks() []kind {
	return []kind{
		{"impostors", 2, 5 * time.Millisecond, (*attacker).impostor},
		{"hearsay about the voters", 1, 20 * time.Millisecond, (*attacker).hearsay},
		{"unfinished questions of many MiB", 1, 500 * time.Millisecond, (*attacker).questions},
		{"half snapshots", 2, 200 * time.Millisecond, (*attacker).snapshot},
		{"ghosts and false words in gossip", 1, 100 * time.Millisecond, (*attacker).gossip},
		{"fresh identities with links", 2, 5 * time.Millisecond, (*attacker).identities},
		{"sessions of strangers' records", 1, 20 * time.Millisecond, (*attacker).sessions},
		{"locks that fill the budget", 1, 2000 * time.Millisecond, (*attacker).budget},
		{"frames of tiny raft messages", 1, 500 * time.Millisecond, (*attacker).raft},
		{"connections without TLS", 2, 20 * time.Millisecond, (*attacker).strangers},
	}
}

func kinds() (names []string) {
	for _, k := range attacks() {
		names = append(names, k.name)
	}
	return names
}

func beAttacker(ctx context.Context, f flags) error {
	// A real attacker would have its own processors, so this process runs at a low priority.
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
		return err
	}
	var p plan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return err
	}
	source, err := credentials.FromSecret(credentials.SecretConfig{
		Secret: p.Secret, Cluster: "mortise", Now: time.Now, Random: random,
	})
	if err != nil {
		return err
	}
	a := &attacker{all: map[string]tally{}, speaker: &attack.Speaker{Label: "mortise", Dial: dial,
		TLS: source.ClientTLS}}
	for _, addr := range p.Addrs {
		k, err := a.meet(ctx, addr)
		if err != nil {
			return fmt.Errorf("meet %s: %w", addr, err)
		}
		a.targets = append(a.targets, k)
	}
	ctx, cancel := context.WithTimeout(ctx, f.length)
	defer cancel()
	var running sync.WaitGroup
	for _, k := range attacks() {
		if !strings.Contains(k.name, f.only) {
			continue
		}
		for range k.lanes {
			running.Go(func() { a.run(ctx, k) })
		}
	}
	for ctx.Err() == nil {
		wait(ctx, 5*time.Second)
		a.tell()
	}
	running.Wait()
	a.tell()
	return nil
}

func dial(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

func random(b []byte) { _, _ = cryptorand.Read(b) } // crypto/rand never returns an error

func (a *attacker) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(a.all)
}

func (a *attacker) run(ctx context.Context, k kind) {
	for n := rand.IntN(len(a.targets)); ctx.Err() == nil; n++ {
		t := k.each(a, ctx, a.targets[n%len(a.targets)])
		if ctx.Err() != nil {
			return // the end of the campaign has interrupted the attempt
		}
		a.mu.Lock()
		sum := a.all[k.name]
		a.all[k.name] = tally{sum.Tried + t.Tried, sum.Refused + t.Refused, sum.Believed + t.Believed}
		a.mu.Unlock()
		wait(ctx, k.pause)
	}
}

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
	c, err := a.speaker.Open(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	answer, err := c.Greet(attack.Sign(key, c.Binding, a.speaker.Hello(key, kind, change)))
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
	c, _, err := a.enter(ctx, target.addr, key, wire.Hello_LINK, func(h *wire.Hello) {
		h.Group, h.Raft = target.hello.Group, raft
	})
	return c, err
}

func (a *attacker) others(target known) []known {
	return slices.DeleteFunc(slices.Clone(a.targets), func(k known) bool { return k.addr == target.addr })
}

func refused(err error) tally {
	if err != nil {
		return tally{Tried: 1, Refused: 1}
	}
	return tally{Tried: 1}
}
