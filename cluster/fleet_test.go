package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip/swim"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// fleet is several instances on one fakeNet, with a simulation of raft.
type fleet struct {
	t     *testing.T
	net   *fakeNet
	clock clock.Clock
	next  uint64
	nodes []*node
	dns   map[string][]string
	slow  map[string]bool // names whose lookup never ends

	mu     sync.Mutex // guards the fields below
	births map[uint64]bool
	logs   []string
}

type node struct {
	*Cluster
	f    *fleet
	port *fakePort
	cfg  Config

	mu       sync.Mutex // guards the fields below
	told     []string   // calls of the host, in order
	group    uint64
	charter  founding.Charter
	raft     uint64
	voters   []Voter
	instance nodeid.ID
	mute     bool  // fleet.raft ignores this node
	failed   error // the last error of Refused or Unsaved
	script         // what the host reports about the voters
}

func newFleet(t *testing.T) *fleet {
	return &fleet{
		t: t, net: newFakeNet(), clock: clock.Monotonic(), births: map[uint64]bool{}, dns: map[string][]string{},
		slow: map[string]bool{},
	}
}

func addrOf(i int) string { return fmt.Sprintf("10.0.0.%d:7947", i+1) }

func joinOf(n int) []string {
	var join []string
	for i := range n {
		join = append(join, addrOf(i))
	}
	return join
}

func (f *fleet) config(i, n int) Config {
	return Config{
		Gossip: swim.Start,
		Name:   fmt.Sprintf("n%d", i), Label: "test", Advertise: addrOf(i), Join: joinOf(n),
		Settings: founding.Settings{Replicas: n, Voters: 3, SessionTTL: 10 * time.Second, Grace: 10 * time.Second},
		Clock:    f.clock, Logger: slog.New(slog.NewTextHandler(f, nil)), Resolve: f.resolve, Kubernetes: true,
	}
}

func (f *fleet) resolve(ctx context.Context, host string) ([]string, error) {
	if err := f.net.failing("lookup"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	slow, hosts := f.slow[host], f.dns[host]
	f.mu.Unlock()
	if slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if hosts == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return hosts, nil
}

func (f *fleet) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs = append(f.logs, string(b))
	return len(b), nil
}

func (f *fleet) logged(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, line := range f.logs {
		if strings.Contains(line, what) {
			n++
		}
	}
	return n
}

// fleetKeys are the keys of the instances in the order of their starts. Their IDs are ascending.
var fleetKeys = sync.OnceValue(func() []nodeid.Key { return nodeidtest.Ascending(512) })

func (f *fleet) start(cfg Config) *node {
	f.t.Helper()
	return f.startWith(cfg, func(n *node) (Host, Net) { return n, n.port })
}

// startWith starts an instance. The function outside returns its Host and its Net.
func (f *fleet) startWith(cfg Config, outside func(n *node) (Host, Net)) *node {
	f.t.Helper()
	f.next++
	n := &node{f: f, cfg: cfg, instance: fleetKeys()[f.next].ID()}
	n.cfg.Key = fleetKeys()[f.next]
	if cfg.Records != nil {
		if b, err := Begins(cfg.Records, cfg.Site); err != nil {
			f.t.Fatal(err)
		} else if !b.Key.ID().IsZero() {
			n.instance, n.cfg.Key = b.Key.ID(), b.Key
		}
	}
	n.port = f.net.listen(cfg.Advertise)
	n.cfg.Host, n.cfg.Net = outside(n)
	if cfg.Settings.Solo {
		n.cfg.Net = nil
	}
	started := make(chan struct{})
	n.port.cluster = func() *Cluster {
		<-started
		return n.Cluster
	}
	n.port.serve(n.instance, func(from Asker, q []byte) []byte {
		<-started
		b := n.Answer(from, q)
		if c, ok := claimed(n.Status().Instance, b); ok {
			n.said("answers", c)
		}
		return b
	})
	c, err := Start(n.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	n.Cluster = c
	close(started)
	f.nodes = append(f.nodes, n)
	return n
}

// stop closes the node and its port, as if its process was killed.
func (n *node) stop() {
	n.f.net.unlisten(n.port)
	n.Close()
	for i, o := range n.f.nodes {
		if o == n {
			n.f.nodes = append(n.f.nodes[:i], n.f.nodes[i+1:]...)
			return
		}
	}
}

func (f *fleet) stop() {
	for len(f.nodes) > 0 {
		f.nodes[0].stop()
	}
}

func (n *node) note(format string, args ...any) {
	n.told = append(n.told, fmt.Sprintf(format, args...))
}

func (n *node) Bound(c founding.Charter, raft uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("bound")
	n.said("is bound", claim{n.instance, Bound})
	n.charter, n.raft, n.group = c, raft, c.Group
}

func (n *node) AllBound(group uint64) {
	n.mu.Lock()
	n.note("all bound")
	n.mu.Unlock()
	if n.raft == 0 {
		return
	}
	n.f.mu.Lock() // the first instance that is called becomes the leader
	n.f.births[group] = true
	n.f.mu.Unlock()
}

func (n *node) Member(group uint64, voters []Voter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("member")
	if s := n.port.owner().Status(); s.Phase != PhaseMember || s.Group != group {
		n.f.t.Errorf("the host of %s is told that it is a member of %x, and sees %+v", n.cfg.Name, group, s)
	}
	n.said("is a member", claim{n.instance, PhaseMember})
	n.group, n.voters = group, voters
}

func (n *node) Voters(voters []Voter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("voters")
	n.voters = voters
	n.spread = append(n.spread, voters)
}

func (n *node) Restart(key nodeid.Key, reason error) {
	instance := key.ID()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("restart")
	n.said("restarts", claim{instance, Newborn})
	n.group, n.raft, n.charter = 0, 0, founding.Charter{}
	n.instance = instance
	n.port.serve(instance, nil)
}

func (n *node) Refused(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("refused")
	n.raft, n.group, n.failed = 0, 0, err
}

func (n *node) Unsaved(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("unsaved")
	n.raft, n.failed = 0, err
}

func (n *node) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failed
}

func (n *node) calls() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.told, ", ")
}

// This method simulates raft for the given time. Every 50 ms it reports to each node whether the
// node's group has a leader, which requires a majority of reachable voters. If the group has a
// leader, its replicas apply Born.
func (f *fleet) raft(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, n := range f.nodes {
			n.mu.Lock()
			group, raft, mute := n.group, n.raft, n.mute
			n.mu.Unlock()
			f.mu.Lock()
			born := f.births[group]
			f.mu.Unlock()
			if mute || group == 0 {
				continue
			}
			leads := f.leads(n, group)
			n.HasLeader(leads)
			if leads && born && raft != 0 {
				n.BornApplied(group)
			}
		}
	}
}

func (f *fleet) leads(n *node, group uint64) bool {
	var charter founding.Charter
	near := 0
	for _, o := range f.nodes {
		o.mu.Lock()
		if o.group == group && o.raft != 0 {
			if len(o.charter.Voters) > 0 { // a prepared replica has no charter
				charter = o.charter
			}
			if o == n || (!f.net.isCut(n.port.addr, o.port.addr) && n.finds(o)) {
				near++
			}
		}
		o.mu.Unlock()
	}
	return near*2 > len(charter.Voters) && len(charter.Voters) > 0
}

// finds reports whether n's address book has the current instance and address of o.
func (n *node) finds(o *node) bool {
	v, ok := n.Voter(o.raft)
	return ok && v.Addr == o.port.addr && v.Instance == o.Status().Instance
}

func (n *fakeNet) isCut(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts[[2]string{a, b}]
}

func (f *fleet) oneGroup() uint64 {
	f.t.Helper()
	group := f.nodes[0].Status().Group
	for _, n := range f.nodes {
		if s := n.Status(); s.Phase != PhaseMember || s.Group != group || group == 0 {
			f.t.Fatalf("%s is %v of group %x, want a member of %x; it waits for: %s", n.cfg.Name, s.Phase, s.Group,
				group, s.Waiting)
		}
	}
	return group
}

func (f *fleet) allSeeAll() bool {
	for _, n := range f.nodes {
		if len(n.Members()) != len(f.nodes) {
			return false
		}
	}
	return true
}
