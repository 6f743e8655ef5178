package mutants

import (
	"slices"
	"strconv"
	"strings"
)

// Layer is a set of tests in one test binary, which must catch the bugs of some packages.
type Layer struct {
	// Name is the name of the layer in the printed table.
	Name string
	// Package is the directory of its test binary.
	Package string
	// Run and Skip select tests of the binary, like the flags of go test. The layer "nodes" has no
	// Run: each bug names its tests in Bug.Nodes.
	Run, Skip string
	// Packages are the packages whose bugs the test binary contains.
	Packages []string
	Env      []string
	// Dear is set for the layers that CI does not run at every merge.
	Dear bool
}

// Sees reports whether the layer is run against the bug.
func (l Layer) Sees(b Bug) bool {
	return slices.Contains(l.Packages, b.Package) && (l.Name != nodes || b.Nodes != "")
}

// Tests returns the regular expression that selects the layer's tests against the given bugs. An
// empty expression selects all tests.
func (l Layer) Tests(bugs ...Bug) string {
	if l.Name != nodes {
		return l.Run
	}
	var all []string
	for _, b := range bugs {
		if l.Sees(b) {
			all = append(all, b.Nodes)
		}
	}
	return strings.Join(all, "|")
}

// Environ returns the variables for the layer's process when it is run against a bug.
func (l Layer) Environ(b Bug) []string {
	if l.Name != clusters || b.Seeds == 0 {
		return l.Env
	}
	// If a variable is set twice, the last value counts.
	return append(slices.Clone(l.Env), "MORTISE_SEEDS="+strconv.Itoa(b.Seeds))
}

const clusters = "clusters"

const nodes = "nodes"

// Layers returns the layers from the fastest to the slowest.
func Layers() []Layer {
	const disks, simulations = "CrashImages|ErrorAtEvery|Flips", "^Test(Durable)?Simulation$|TestTheSimulationSees"
	return []Layer{
		{Name: "rules", Package: "lockfsm", Run: "^TestTwin$|^TestTranscripts$", Packages: []string{"lockfsm"}},
		{Name: "machine", Package: "lockfsm", Skip: "^TestTwin$|^TestTranscripts$", Packages: []string{"lockfsm"}},
		{Name: "leases", Package: "session", Run: "^TestSimulation$", Packages: []string{"session", "session/client",
			"session/keeper", "lockfsm"}, Env: []string{"MORTISE_SEEDS=300"}},
		{Name: "clock", Package: "internal/clock", Packages: []string{"internal/clock"}},
		{Name: "wire", Package: "session", Skip: "^TestSimulation$", Packages: []string{"session"}},
		{Name: "stays", Package: "session/stay", Packages: []string{"session/stay"}},
		{Name: "clients", Package: "session/client", Packages: []string{"session", "session/client", "session/keeper",
			"session/stay", "lockfsm"}},
		{Name: "keepers", Package: "session/keeper", Packages: []string{"session", "session/keeper", "lockfsm"}},
		{Name: "birth", Package: "cluster/founding", Run: "^TestSimulation$", Packages: []string{"cluster/founding"}},
		{Name: "durable", Package: "cluster/founding", Run: "^TestDurableSimulation$",
			Packages: []string{"cluster/founding"}},
		{Name: "founding", Package: "cluster/founding", Skip: simulations, Packages: []string{"cluster/founding"}},
		{Name: "discovery", Package: "cluster/discovery", Packages: []string{"cluster/discovery"}},
		{Name: "gossip", Package: "cluster/gossip/swim", Packages: []string{"cluster/gossip/swim"}},
		{Name: "voters", Package: "cluster/voters", Packages: []string{"cluster/voters"}},
		{Name: "lead", Package: "cluster/lead", Packages: []string{"cluster/lead"}},
		{Name: "log", Package: "raftlog", Run: "^TestChaos(WithChanges)?$", Packages: []string{"raftlog"}},
		{Name: "replica", Package: "raftlog", Skip: "^TestChaos(WithChanges)?$", Packages: []string{"raftlog"}},
		{Name: "directory", Package: "raftlog/storage", Skip: disks, Packages: []string{"raftlog/storage"}},
		{Name: "disk", Package: "raftlog/storage", Run: disks, Packages: []string{"raftlog/storage"}, Dear: true},
		{Name: "glue", Package: "internal/replica", Packages: []string{"internal/replica"}},
		{Name: "rights", Package: "internal/capability", Packages: []string{"internal/capability"}},
		{Name: "shares", Package: "internal/fair", Packages: []string{"internal/fair"}},
		{Name: "tables", Package: "internal/numbered", Packages: []string{"internal/numbered"}},
		{Name: "texts", Package: "internal/plain", Packages: []string{"internal/plain"}},
		{Name: "queries", Package: "internal/queries", Packages: []string{"internal/queries", "internal/capability",
			"internal/plain"}},
		{Name: "credentials", Package: "internal/credentials", Packages: []string{"internal/credentials",
			"internal/capability"}},
		{Name: "cluster", Package: "cluster", Packages: []string{"cluster", "cluster/discovery", "cluster/founding",
			"cluster/gossip/swim", "cluster/lead"}, Dear: true},
		{Name: "transport", Package: "transport", Skip: "TenThousand|GeneratedCode", Packages: []string{"transport"},
			Dear: true},
		{Name: clusters, Package: "internal/lab/sim", Run: "^TestSeeds$",
			Packages: []string{"lockfsm", "session", "session/client", "session/keeper", "session/stay", "raftlog",
				"cluster", "cluster/founding", "cluster/lead", "cluster/voters", "internal/replica"},
			Env: []string{"MORTISE_SEED=1", "MORTISE_SEEDS=20"}, Dear: true},
		{Name: "agent", Package: "cmd/mortise", Packages: []string{"cmd/mortise"},
			Run: "^Test(Shares|EveryWait|Waiting|AGrantHas|Requests|Refusals|Clients|Leases|HolderFate|Command|ALockLasts|" +
				"WhatIsATouch)"},
		{Name: "instance", Package: "internal/instance", Packages: []string{"internal/instance"}},
		{Name: "face", Package: ".", Packages: []string{"."}},
		{Name: "guests", Package: "internal/guest", Run: "EveryKind|AnsweredLast", Packages: []string{"internal/guest"}},
		{Name: "modes", Package: "internal/modes", Packages: []string{"internal/modes"}},
		{Name: "counter", Package: "counter", Packages: []string{"counter"}},
		{Name: "keys", Package: "keys", Packages: []string{"keys"}},
		{Name: "presence", Package: "presence", Packages: []string{"presence", "internal/hold"}},
		{Name: "shard", Package: "shard", Packages: []string{"shard", "internal/hold"}},
		{Name: "barrier", Package: "barrier", Packages: []string{"barrier"}},
		{Name: "tick", Package: "tick", Packages: []string{"tick"}},
		{Name: "fence", Package: "fence", Run: "Files|Mark", Packages: []string{"fence"}},
		{Name: "rooms", Package: "mortisetest", Run: "^TestEachLossIsReported$|^TestEachPackageWaits",
			Packages: []string{"election", "keep", "tick", "shard", "barrier", "presence", "stripe", "internal/hold"}},
		{Name: "holds", Package: "internal/hold", Packages: []string{"internal/hold"}},
		{Name: "keep", Package: "keep", Packages: []string{"internal/hold"}},
		{Name: "election", Package: "election", Packages: []string{"internal/hold"}},
		{Name: "page", Package: "console", Packages: []string{"console"}, Run: "^Test(WaitGraph|TheVoters|AHolder)"},
		{Name: nodes, Package: "internal/lab/e2e", Dear: true, Packages: []string{"lockfsm", "session", "session/client",
			"session/keeper", "session/stay", "raftlog", "raftlog/storage", "cluster", "cluster/discovery",
			"cluster/founding", "cluster/gossip/swim", "cluster/lead", "cluster/voters", "transport",
			"internal/credentials", "internal/queries", "internal/replica", "internal/instance", "internal/trace",
			"internal/modes", "."}},
	}
}
