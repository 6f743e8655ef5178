package main

import "slices"

// shell is a package whose rare paths must be reached.
type shell struct {
	dir   string
	whole bool // its own tests run whole nodes or real disks, so they are a campaign
}

// shells are the packages that carry, wait and refuse, without the cores. The tests of this package
// fail if a package is neither here nor in elsewhere.
var shells = [...]shell{
	{dir: "internal/instance"}, {dir: "internal/replica"}, {dir: "internal/queries"}, {dir: "transport"},
	{dir: "session/client"}, {dir: "session/keeper"}, {dir: "cluster"}, {dir: "cluster/gossip/swim"},
	{dir: "raftlog"}, {dir: "raftlog/storage", whole: true},
	{dir: ".", whole: true}, {dir: "internal/guest", whole: true}, {dir: "internal/trace"},
	{dir: "internal/history"}, {dir: "internal/hold"}, {dir: "console", whole: true},
	{dir: "barrier", whole: true}, {dir: "counter", whole: true}, {dir: "election", whole: true},
	{dir: "fence", whole: true}, {dir: "fence/grpcfence", whole: true}, {dir: "flight", whole: true},
	{dir: "keep", whole: true}, {dir: "keys", whole: true},
	{dir: "presence", whole: true}, {dir: "shard", whole: true}, {dir: "stripe", whole: true},
	{dir: "tick", whole: true}, {dir: "cmd/mortise", whole: true},
}

// The reasons for which a package is no shell.
const (
	core   = "a core: its simulation and its second implementation judge it"
	pure   = "it neither waits nor sends: tables and fuzz targets of its package"
	config = "it checks or reads what an operator has configured"
	tests  = "it is only for tests and tools"
)

// elsewhere returns the packages that are no shells, and why. A name with "/..." covers all below.
func elsewhere() map[string]string {
	return map[string]string{
		"cluster/founding": core, "cluster/lead": core, "cluster/voters": core, "lockfsm": core, "session": core,
		"session/stay": core,

		"cluster/gossip":      pure,
		"internal/capability": pure, "internal/clock": pure, "internal/fair": pure, "internal/formats": pure,
		"internal/lapse": pure, "internal/modes": pure, "internal/nodeid": pure, "internal/numbered": pure,
		"internal/plain": pure,
		"internal/shown": pure, "internal/tofu": pure, "transport/wire/...": "generated",

		"cluster/discovery": config, "internal/credentials": config, "internal/variables": config,

		"fence/fencetest": tests, "internal/lab/...": tests, "internal/memnet": tests, "internal/outside": tests,
		"mortisetest": tests, "examples/...": tests,
	}
}

// campaigns returns the packages whose tests run whole nodes or faulty disks. The simulation is not
// among them, since it replaces the shells by its own.
func campaigns() []string {
	all := []string{"internal/lab/e2e", "internal/lab/whole", "mortisetest"}
	for _, s := range shells {
		if s.whole {
			all = append(all, s.dir)
		}
	}
	return all
}

// rigs returns the packages whose tests run a shell alone, with the rest replaced.
func rigs() (all []string) {
	for _, s := range shells {
		if !slices.Contains(campaigns(), s.dir) {
			all = append(all, s.dir)
		}
	}
	return all
}
