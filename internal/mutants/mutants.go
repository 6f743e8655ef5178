// Package mutants has the planted bugs: the hazards and counter-examples behind the design, each as
// one or two lines that break the rule against it. They can be switched on, one at a time. A check
// that has never caught a planted bug proves nothing, so the command catch runs the checks against
// every one of them, from the cheapest layer to the dearest, and fails if one goes unnoticed.
//
// The product has no planted bug in it. The files in the directory edits say how each bug is put
// into the sources: some lines of a file, and what replaces them, with a condition that calls
// bug(name). All edits together make one overlay for go build and go test ([Overlay]); the code
// built with it compares the name with MORTISE_BUG, read once at the start of the process.
//
// Guarantees: an edit whose lines do not stand in its file exactly once fails TestEditsFit, which
// names it, and the lists of bugs and of edits have the same names. Concurrency: plain values.
// Failure: none. Limits: a bug is planted where its rule stands, once; a rule that two packages
// enforce is switched off in both, under one name. Refused alternatives: conditions in the product,
// which every reader of a rule has to read around; and a tool that mutates the source anywhere. It
// finds tests that are missing for lines; here each entry is a way to break a promise, which a
// person has thought of.
package mutants

import (
	"slices"
	"strconv"
	"strings"
)

// Bug is one planted bug.
type Bug struct {
	// Name is what the edits ask for and MORTISE_BUG is set to.
	Name string
	// Room is the directory of the rule, "." for the root.
	Package string
	// Hazard is the hazard's number in the list from which the design was made: 1-77 of its table,
	// A, B, L, S of its counter-examples; "none" if it is not there.
	Hazard string
	// Breaks says in plain words what goes wrong.
	Breaks string
	// Nodes names the tests of whole nodes that should see it, as a regular expression. Empty means
	// that there is none.
	Nodes string
	// Some is set for the part that CI runs at every merge.
	Some bool
	// Seeds is within how many seeds the simulated clusters see it. Zero means unknown: they run as
	// many as the layer says.
	Seeds int
}

// Layer is a set of tests in one test binary, which must catch the bugs of some packages.
type Layer struct {
	// Name is what the table calls it.
	Name string
	// Package is the directory of its test binary.
	Package string
	// Run and Skip choose among its tests, as go test does. An empty Run means all, an empty Skip
	// none. The layer "nodes" has no Run: each bug names its tests in Bug.Nodes.
	Run, Skip string
	// Rooms are the packages whose bugs it can see, those that the binary is made of.
	Packages []string
	// Env is set for its process.
	Env []string
	// Dear is set for what CI does not run at every merge.
	Dear bool
}

// Sees reports whether the layer is to see the bug.
func (l Layer) Sees(b Bug) bool {
	return slices.Contains(l.Packages, b.Package) && (l.Name != nodes || b.Nodes != "")
}

// Tests returns which of the layer's tests are to run against these bugs, as a regular expression.
// Empty means all.
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

// Environ returns what is set for the layer's process against a bug.
func (l Layer) Environ(b Bug) []string {
	if l.Name != clusters || b.Seeds == 0 {
		return l.Env
	}
	return append(slices.Clone(l.Env), "MORTISE_SEEDS="+strconv.Itoa(b.Seeds)) // if there are two, the last one counts
}

// clusters is the layer of internal/sim.
const clusters = "clusters"

// nodes is the layer whose tests each bug names.
const nodes = "nodes"

// Layers returns the layers from the cheapest to the dearest.
func Layers() []Layer {
	const disks = "CrashImages|ErrorAtEvery|Flips"
	const simulations = "^Test(Durable)?Simulation$|TestTheSimulationSees"
	return []Layer{
		{Name: "rules", Package: "lockfsm", Run: "^TestTwin$|^TestTranscripts$", Packages: []string{"lockfsm"}},
		{Name: "machine", Package: "lockfsm", Skip: "^TestTwin$|^TestTranscripts$", Packages: []string{"lockfsm"}},
		{Name: "leases", Package: "session", Run: "^TestSimulation$", Packages: []string{"session", "session/client",
			"session/keeper", "lockfsm"}, Env: []string{"MORTISE_SEEDS=300"}},
		{Name: "wire", Package: "session", Skip: "^TestSimulation$", Packages: []string{"session"}},
		{Name: "clients", Package: "session/client", Packages: []string{"session", "session/client", "session/keeper",
			"lockfsm"}},
		{Name: "keepers", Package: "session/keeper", Packages: []string{"session", "session/keeper", "lockfsm"}},
		{Name: "birth", Package: "cluster/founding", Run: "^TestSimulation$", Packages: []string{"cluster/founding"}},
		{Name: "durable", Package: "cluster/founding", Run: "^TestDurableSimulation$",
			Packages: []string{"cluster/founding"}},
		{Name: "founding", Package: "cluster/founding", Skip: simulations, Packages: []string{"cluster/founding"}},
		{Name: "discovery", Package: "cluster/discovery", Packages: []string{"cluster/discovery"}},
		{Name: "gossip", Package: "cluster/gossip", Packages: []string{"cluster/gossip"}},
		{Name: "voters", Package: "cluster/voters", Packages: []string{"cluster/voters"}},
		{Name: "lead", Package: "cluster/lead", Packages: []string{"cluster/lead"}},
		{Name: "log", Package: "raftlog", Run: "^TestChaos(WithChanges)?$", Packages: []string{"raftlog"}},
		{Name: "replica", Package: "raftlog", Skip: "^TestChaos(WithChanges)?$", Packages: []string{"raftlog"}},
		{Name: "directory", Package: "raftlog/storage", Skip: disks, Packages: []string{"raftlog/storage"}},
		{Name: "disk", Package: "raftlog/storage", Run: disks, Packages: []string{"raftlog/storage"}, Dear: true},
		{Name: "glue", Package: "internal/replica", Packages: []string{"internal/replica"}},
		{Name: "rights", Package: "internal/capability", Packages: []string{"internal/capability"}},
		{Name: "queries", Package: "internal/queries", Packages: []string{"internal/queries", "internal/capability"}},
		{Name: "credentials", Package: "internal/credentials", Packages: []string{"internal/credentials",
			"internal/capability"}},
		{Name: "cluster", Package: "cluster", Packages: []string{"cluster", "cluster/discovery", "cluster/founding",
			"cluster/gossip", "cluster/lead"}, Dear: true},
		{Name: "transport", Package: "transport", Skip: "TenThousand|GeneratedCode", Packages: []string{"transport"},
			Dear: true},
		{Name: clusters, Package: "internal/sim", Run: "^TestSeeds$",
			Packages: []string{"lockfsm", "session", "session/client", "session/keeper", "raftlog", "cluster",
				"cluster/founding", "cluster/lead", "cluster/voters", "internal/replica"},
			Env: []string{"MORTISE_SEED=1", "MORTISE_SEEDS=20"}, Dear: true},
		{Name: "instance", Package: "internal/instance", Packages: []string{"internal/instance"}},
		{Name: "face", Package: ".", Packages: []string{"."}},
		{Name: nodes, Package: "internal/e2e", Dear: true, Packages: []string{"lockfsm", "session", "session/client",
			"session/keeper", "raftlog", "raftlog/storage", "cluster", "cluster/discovery", "cluster/founding",
			"cluster/gossip", "cluster/lead", "cluster/voters", "transport", "internal/credentials",
			"internal/queries", "internal/replica", "internal/instance", "."}},
	}
}

// All returns every planted bug, by package.
func All() []Bug {
	var all []Bug
	for _, list := range [...][]Bug{rules(), leases(), log(), founding(), voting(), wiring(), secrets(), bounds(),
		identity(), fleet(), words(), disks(), shells(), owners()} {
		all = append(all, list...)
	}
	return all
}
