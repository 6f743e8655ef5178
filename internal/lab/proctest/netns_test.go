//go:build linux

package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

type network struct {
	t        *testing.T
	name     string // prefix of the names of its namespaces
	machines []*machine
	air      *air // if nil, a bridge carries the packets
}

type machine struct {
	space string
	ip    string
	cut   map[*machine]bool // the machines to which packets from this machine are lost
}

// worlds counts the networks of this process. The count is part of the name of each network.
var worlds atomic.Int64

// newNetwork makes a network without machines. The end of the test removes it.
func newNetwork(t *testing.T, a *air) *network {
	t.Helper()
	n := &network{t: t, name: fmt.Sprintf("%s-%d", runName(), worlds.Add(1)), air: a}
	t.Cleanup(n.remove)
	if a != nil {
		return n
	}
	n.ip("netns add "+n.bridge(), fmt.Sprintf("-n %s link add name bridge0 type bridge", n.bridge()),
		fmt.Sprintf("-n %s link set bridge0 up", n.bridge()))
	return n
}

func (n *network) bridge() string { return n.name + "-bridge" }

// add makes a machine with an address that no other machine of the network has had.
func (n *network) add() *machine {
	n.t.Helper()
	number := len(n.machines) + 1
	m := &machine{space: fmt.Sprintf("%s-%d", n.name, number), ip: fmt.Sprintf("10.77.%d.%d", number/200,
		number%200+1), cut: map[*machine]bool{}}
	n.machines = append(n.machines, m)
	n.ip("netns add " + m.space)
	if n.air != nil {
		n.air.plug(n.t, m)
	} else {
		n.ip(
			fmt.Sprintf("link add name eth0 netns %s type veth peer name port%d netns %s", m.space, number, n.bridge()),
			fmt.Sprintf("-n %s link set port%d master bridge0 up", n.bridge(), number),
		)
	}
	n.ip(
		fmt.Sprintf("-n %s address add %s/16 dev eth0", m.space, m.ip),
		fmt.Sprintf("-n %s link set eth0 up", m.space),
		fmt.Sprintf("-n %s link set lo up", m.space),
	)
	return m
}

// cutOneWay loses everything that the first machine sends to the second, without an error.
func (n *network) cutOneWay(from, to *machine) {
	n.t.Helper()
	from.cut[to] = true
	// No machine has this hardware address.
	n.ip(fmt.Sprintf("-n %s neighbour replace %s lladdr 02:00:00:00:00:00 dev eth0 nud permanent", from.space, to.ip))
}

func (n *network) cut(some, others []*machine) {
	n.t.Helper()
	for _, a := range some {
		for _, b := range others {
			n.cutOneWay(a, b)
			n.cutOneWay(b, a)
		}
	}
}

func (n *network) heal() {
	n.t.Helper()
	for _, m := range n.machines {
		for other := range m.cut {
			n.ip(fmt.Sprintf("-n %s neighbour delete %s dev eth0", m.space, other.ip))
		}
		clear(m.cut)
	}
}

// neighborTable is the limit of neighbor addresses in all namespaces together. The default of 1,024
// is too low for two hundred machines.
const neighborTable = 65536

func (n *network) roomForNeighbors() {
	n.t.Helper()
	for _, name := range []string{"gc_thresh3", "gc_thresh2"} {
		path := "/proc/sys/net/ipv4/neigh/default/" + name
		before, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, fmt.Append(nil, neighborTable), 0o644)
		}
		if err != nil {
			n.t.Skipf("*** SKIPPED: a fleet needs a larger table of neighbors, and its size cannot be set: %v ***", err)
		}
		n.t.Cleanup(func() { _ = os.WriteFile(path, before, 0o644) })
	}
}

// part cuts some machines off from all other machines, in both directions. It moves them to a
// bridge of their own, so they still reach each other.
func (n *network) part(some []*machine) {
	n.t.Helper()
	n.ip(fmt.Sprintf("-n %s link add name bridge1 type bridge", n.bridge()), fmt.Sprintf("-n %s link set bridge1 up",
		n.bridge()))
	n.hang(some, "bridge1")
}

func (n *network) join(some []*machine) {
	n.t.Helper()
	n.hang(some, "bridge0")
	n.ip(fmt.Sprintf("-n %s link delete bridge1", n.bridge()))
}

func (n *network) hang(some []*machine, bridge string) {
	n.t.Helper()
	for _, m := range some {
		n.ip(fmt.Sprintf("-n %s link set port%d master %s", n.bridge(), slices.Index(n.machines, m)+1, bridge))
	}
}

func (n *network) ip(lines ...string) {
	n.t.Helper()
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			n.t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
}

func (n *network) remove() {
	for _, space := range spaces() {
		if strings.HasPrefix(space, n.name+"-") {
			_ = exec.Command("ip", "netns", "del", space).Run()
		}
	}
}

func spaces() []string {
	var names []string
	entries, _ := os.ReadDir("/run/netns") // without the directory there are no namespaces
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
