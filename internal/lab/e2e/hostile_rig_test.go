package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/transport"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// assault is a working group and an attacker with the secret, or with the one certificate that all
// instances share.
type assault struct {
	*fleet
	t        *testing.T
	change   func(*mortise.Config)
	security transport.Security // nil means plain text
	speaker  *attack.Speaker
	log      *lines
	key      nodeid.Key
	quiet    time.Duration // p99 of a lock and unlock before the attack
}

// linkLatency makes the latency of locks in fake time greater than zero.
const linkLatency = time.Millisecond

// everySecurity returns all kinds of security, and half of them at a merge. With TLS and TLSFiles
// all instances share one certificate.
func everySecurity() []string {
	return slow.Sized([]string{"secret", "TLS"}, []string{"plain", "secret", "TLS", "TLSFiles"})
}

func assaulted(t *testing.T, kinds []string, test func(a *assault)) {
	modes := map[string]func(*testing.T) func(*mortise.Config){
		"plain":  func(*testing.T) func(*mortise.Config) { return func(*mortise.Config) {} },
		"secret": func(*testing.T) func(*mortise.Config) { return withSecret(secretA) },
		"TLS": func(t *testing.T) func(*mortise.Config) {
			return newCompany(t).named("orders.internal", "orders.internal")
		},
		"TLSFiles": func(t *testing.T) func(*mortise.Config) {
			return newCompany(t).files("orders.internal", "orders.internal")
		},
	}
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { test(newAssault(t, modes[name](t))) })
		})
	}
}

func newAssault(t *testing.T, change func(*mortise.Config)) *assault {
	return newAssaultWith(t, change, nil)
}

// newAssaultWith starts three instances. alter changes the World of each instance. Nil means no
// change.
func newAssaultWith(t *testing.T, change func(*mortise.Config), alter func(*outside.World)) *assault {
	t.Helper()
	a := &assault{t: t, change: change, log: &lines{}, key: nodeidtest.Key(hostileInstance), fleet: newFleet(t)}
	a.alter = alter
	if a.variety.name == certified { // the attacker speaks with the security that the test names
		a.variety = variety{}
	}
	for i := range 3 {
		c := a.fleet.config(i, 3)
		a.configure(&c)
		a.start(i, c)
	}
	a.ready()
	config := a.config(66, 3)
	change(&config)
	source, err := credentialsOf(config, a.nodes[0].config.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	a.speaker = &attack.Speaker{Label: a.nodes[0].config.Cluster, Dial: a.net.Dialer("10.0.0.66")}
	if source != nil {
		a.security, a.speaker.TLS = source, source.ClientTLS
	}
	a.net.SetLatency(linkLatency)
	a.quiet = a.p99(5*time.Second, nil)
	return a
}

// credentialsOf returns the credentials of the configured kind of security. Nil means plain text.
func credentialsOf(c mortise.Config, cluster string) (*credentials.Source, error) {
	names := credentials.Names{Peers: c.TLSPeers, Guests: c.TLSGuests}
	switch {
	case c.Secret != "":
		return credentials.FromSecret(credentials.SecretConfig{Secret: c.Secret, Cluster: cluster, Now: time.Now})
	case c.TLS != nil:
		return credentials.FromTLS(c.TLS, names)
	case c.TLSFiles != mortise.TLSFiles{}:
		return credentials.FromFiles(credentials.FilesConfig{
			CertFile: c.TLSFiles.Cert, KeyFile: c.TLSFiles.Key, CAFile: c.TLSFiles.CA, Names: names, Logger: c.Logger,
			Now: time.Now,
		})
	}
	return nil, nil
}

// security returns the security of the nodes' variety. Nil means plain text.
func (f *fleet) security() transport.Security {
	if f.variety.name != certified {
		return nil
	}
	c := f.config(66, 3)
	f.variety.change(&c)
	source, err := credentialsOf(c, f.nodes[0].config.Cluster)
	if err != nil {
		f.t.Fatal(err)
	}
	return source
}

func (a *assault) configure(c *mortise.Config) {
	a.change(c)
	c.Logger = slog.New(slog.NewTextHandler(a.log, nil)).With("node", c.Name)
}

// join starts one more instance, which gets no vote as long as three other instances vote.
func (a *assault) join(i int) {
	a.t.Helper()
	c := a.config(i, 3)
	a.configure(&c)
	a.start(i, c)
	a.ready()
}

// p99 runs the given function, if it is not nil. Meanwhile, and for at least the given time, it
// repeatedly locks and unlocks a free key on every instance. It returns the 99th percentile of
// the times.
func (a *assault) p99(least time.Duration, during func()) time.Duration {
	a.t.Helper()
	ctx, stop := context.WithCancel(a.t.Context())
	var mu sync.Mutex // guards the fields below
	var all []time.Duration
	var callers sync.WaitGroup
	for i, n := range a.nodes {
		if n == nil {
			continue
		}
		callers.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				patience, cancel := context.WithTimeout(a.t.Context(), 30*time.Second)
				l, err := n.Lock(patience, fmt.Sprint("timed ", i))
				if err == nil {
					err = l.Unlock(patience)
				}
				cancel()
				if err != nil {
					a.t.Errorf("node %d: %v", i, err)
					return
				}
				mu.Lock()
				all = append(all, time.Since(began))
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	began := time.Now()
	if during != nil {
		during()
	}
	time.Sleep(max(0, least-time.Since(began)))
	stop()
	callers.Wait()
	if len(all) == 0 {
		a.t.Fatal("no lock was granted")
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// attack runs an attack. It measures locks until the attack has ended, and for at least the given
// time. It fails the test if an instance loses its vote or its leadership, or if the latency of
// locks grows tenfold.
func (a *assault) attack(least time.Duration, do func()) {
	a.t.Helper()
	before := a.nodes[a.leader()].Status()
	var voters []uint64
	for _, n := range a.nodes {
		voters = append(voters, raftOf(n))
	}
	attacked := a.p99(least, do)
	a.t.Logf("p99 %v quiet, %v attacked", a.quiet, attacked)
	if attacked >= 10*a.quiet {
		a.t.Errorf("p99 was %v, and is %v while it is attacked", a.quiet, attacked)
	}
	if after := a.nodes[a.leader()].Status(); after.Term != before.Term || after.Leader != before.Leader {
		a.t.Errorf("%s led in term %d, now %s leads in term %d", before.Leader, before.Term, after.Leader, after.Term)
	}
	for i, n := range a.nodes {
		if raft := raftOf(n); raft != voters[i] {
			a.t.Errorf("node %d had raft ID %x and has %x", i, voters[i], raft)
		}
		if err := n.Err(); err != nil {
			a.t.Errorf("node %d has failed: %v", i, err)
		}
	}
}

func raftOf(n *node) uint64 {
	if r := n.Replica(); r != nil {
		return r.ID
	}
	return 0
}

func (a *assault) warned(texts ...string) bool {
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	for line := range strings.Lines(a.log.text.String()) {
		all := strings.Contains(line, "level=WARN")
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return true
		}
	}
	return false
}

// impostors returns greetings that claim to come from victim. An attacker can make them without
// the victim's private key. They are for the connection with the given binding. seen is a
// greeting of the victim from another connection.
func (a *assault) impostors(victim *node, kind wire.Hello_Kind, binding []byte,
	seen *wire.Greeting) map[string]*wire.Greeting {
	r := victim.Replica()
	own := a.speaker.Hello(a.key, kind, func(h *wire.Hello) {
		h.Key, h.Addr, h.Number, h.Life = victim.Key().Public(), victim.Address, 1<<40, 7
		if r != nil {
			h.Group, h.Raft = r.Group, r.ID
		}
	})
	signed := attack.Sign(a.key, binding, own)
	return map[string]*wire.Greeting{
		"signed with another key":         signed,
		"not signed":                      {Hello: own},
		"with a signature of zeros":       {Hello: own, Signature: make([]byte, 64)},
		"with the victim's own signature": {Hello: own, Signature: seen.Signature},
		"as the victim said it elsewhere": seen,
		"with a refusal beside the hello": {Hello: own, Signature: signed.Signature, Refusal: &wire.Refusal{}},
		"with the signature of another one": {Hello: own, Signature: attack.Sign(a.key, make([]byte, 32),
			own).Signature},
	}
}

func (a *assault) overhear(i int) *wire.Greeting {
	a.t.Helper()
	c, err := a.speaker.Open(a.t.Context(), address(i))
	if err != nil {
		a.t.Fatal(err)
	}
	defer c.Close()
	hello := a.speaker.Hello(a.key, wire.Hello_CALLS, nil)
	answer, err := c.Greet(attack.Sign(a.key, c.Binding, hello))
	if err != nil || answer.Refusal != nil {
		a.t.Fatalf("%v, %v", answer, err)
	}
	return answer
}

// impersonate dials the node with the index at, and claims to be the node with the index victim.
// It tries every way, and each attempt must be refused. If the two instances are linked, the log
// must name the victim and both addresses.
func (a *assault) impersonate(victim, at int) {
	a.t.Helper()
	seen := a.overhear(victim)
	for _, kind := range []wire.Hello_Kind{wire.Hello_LINK, wire.Hello_CALLS} {
		for how := range a.impostors(a.nodes[victim], kind, nil, seen) {
			c, err := a.speaker.Open(a.t.Context(), address(at))
			if err != nil {
				a.t.Fatal(err)
			}
			answer, err := c.Greet(a.impostors(a.nodes[victim], kind, c.Binding, seen)[how])
			if err != nil || answer.Refusal.GetReason() != wire.Refusal_MALFORMED || answer.Hello != nil {
				a.t.Errorf("node %d believes in an impostor of node %d, %s: %v, %v", at, victim, how, answer, err)
			}
			if answer.GetRefusal() == nil {
				// The connection stays open and idle, and occupies the victim's place.
				continue
			}
			if !c.Ended(2 * time.Second) {
				a.t.Errorf("node %d still listens to an impostor %s", at, how)
			}
			c.Close()
		}
	}
	synctest.Wait()
	name := a.nodes[victim].ID()
	if a.nodes[at].Port.Linked(name) && !a.warned("node=node-"+fmt.Sprint(at), "instance="+name.String(),
		"link="+host(victim), "other=10.0.0.66:") {
		a.t.Errorf("node %d has not logged that %s was claimed", at, name)
	}
}
