package policy

import (
	"strings"
	"testing"
)

// allowed contains the permitted imports of each package besides the standard library. "module/..."
// permits all packages below the module.
var allowed = map[string][]string{
	"lockfsm":           {"internal/capability", "internal/numbered"},
	"cluster/founding":  {"internal/formats", "internal/nodeid", "internal/plain"},
	"cluster/discovery": {"cluster/founding", "internal/plain"},
	"cluster/gossip":    {"internal/nodeid"},
	"cluster/gossip/swim": {"cluster/gossip", "internal/formats", "internal/nodeid",
		"github.com/hashicorp/memberlist"},
	"cluster/voters":           {"internal/nodeid"},
	"cluster/lead":             {"cluster/founding", "cluster/voters", "internal/nodeid"},
	"internal/nodeid":          {},
	"internal/fair":            {"internal/nodeid"},
	"internal/numbered":        {},
	"internal/formats":         {},
	"internal/lab/nodeidtest":  {"internal/nodeid"},
	"internal/clock":           {"golang.org/x/sys/..."},
	"internal/lab/check":       {"lockfsm", "internal/nodeid"},
	"internal/history":         {"lockfsm"},
	"internal/lab/historytest": {"internal/history", "lockfsm"},
	"internal/trace":           {"session/client", "lockfsm", "internal/clock", "internal/history", "internal/modes"},
	"internal/memnet":          {},
	"internal/replica": {
		"cluster/founding", "cluster/voters", "internal/capability", "internal/clock", "internal/fair",
		"internal/nodeid", "internal/plain", "lockfsm", "raftlog", "session", "session/client", "session/keeper",
	},
	"internal/lab/policy":       {},
	"internal/lab/proof":        {},
	"internal/lab/limits":       {},
	"internal/lab/plugs":        {},
	"internal/lab/e2e":          {},
	"internal/lab/whole":        {"internal/lab/shrink", "internal/lab/timeline"},
	"internal/lab/whole/native": {"internal/lab/mutants"},
	"internal/lab/whole/build":  {"internal/lab/whole/native"},
	"internal/lab/whole/page":   {"internal/lab/whole"},
	"internal/outside": {
		"cluster", "internal/clock", "internal/nodeid", "internal/replica", "lockfsm", "raftlog", "raftlog/storage",
		"session/client", "session/keeper", "transport",
		"go.etcd.io/raft/v3/raftpb",
	},
	"internal/capability":  {"internal/plain"},
	"internal/credentials": {"internal/capability", "internal/plain"},
	"internal/plain":       {},
	"internal/shown":       {},
	"internal/lapse":       {},
	"internal/modes":       {"lockfsm"},
	"internal/variables":   {"internal/credentials"},
	"internal/guest": {"", "cluster", "cluster/discovery", "internal/clock", "internal/credentials",
		"internal/lapse", "internal/modes", "internal/nodeid", "internal/outside", "internal/plain", "internal/queries",
		"internal/shown", "lockfsm", "session",
		"session/client", "transport", "transport/wire/...", "go.etcd.io/raft/v3/raftpb"},
	"session": {"locker", "lockfsm", "internal/clock", "internal/nodeid"},
	"session/client": {"session", "session/stay", "locker", "lockfsm", "internal/clock", "internal/nodeid",
		"internal/numbered", "internal/plain"},
	"session/keeper": {"session", "lockfsm", "internal/capability", "internal/clock", "internal/nodeid"},
	"session/stay":   {"lockfsm", "internal/clock"},
	"raftlog":        {"go.etcd.io/raft/v3/...", "google.golang.org/protobuf/...", "internal/clock"},
	"raftlog/storage": {"raftlog", "go.etcd.io/raft/v3/...", "google.golang.org/protobuf/...",
		"go.etcd.io/bbolt/...", "golang.org/x/sys/..."},
	"internal/lab/logtest": {"raftlog", "go.etcd.io/raft/v3/...", "google.golang.org/protobuf/..."},
	"cluster": {"cluster/discovery", "cluster/founding", "cluster/gossip", "cluster/lead",
		"cluster/voters", "internal/clock", "internal/nodeid"},
	"transport": {"transport/...", "internal/capability", "internal/fair", "internal/formats", "internal/nodeid",
		"internal/plain", "google.golang.org/grpc/...", "google.golang.org/protobuf/...",
		"go.etcd.io/raft/v3/raftpb"},
	"": {
		"cluster", "cluster/discovery", "cluster/voters", "internal/clock", "internal/credentials",
		"internal/instance", "internal/lapse", "internal/modes", "internal/nodeid", "internal/outside", "internal/plain",
		"internal/queries", "internal/replica", "internal/shown", "internal/trace", "locker", "lockfsm",
		"session", "session/client",
		"internal/variables", "transport/wire/mortise/query/v1",
	},
	"internal/instance": {
		"cluster", "cluster/discovery", "cluster/founding", "cluster/gossip/swim",
		"cluster/voters", "go.etcd.io/raft/v3/raftpb", "internal/capability",
		"internal/clock", "internal/credentials", "internal/history", "internal/nodeid",
		"internal/outside", "internal/plain", "internal/queries", "internal/replica", "internal/trace", "lockfsm",
		"raftlog", "raftlog/storage", "session", "session/client", "session/keeper", "transport",
		"transport/wire/mortise/query/v1",
	},
	// This package translates between messages and the types of other packages.
	"internal/queries": {
		"cluster", "cluster/voters", "internal/capability", "internal/fair", "internal/nodeid", "internal/plain",
		"internal/replica", "locker", "lockfsm", "session", "transport", "transport/wire/...",
		"google.golang.org/grpc/...", "google.golang.org/protobuf/...",
	},
	"stripe":                         {""},
	"flight":                         {"locker"},
	"console":                        {"", "internal/plain", "internal/shown"},
	"tick":                           {"", "internal/hold", "internal/shown", "locker"},
	"election":                       {"", "internal/hold", "internal/shown"},
	"keep":                           {"", "internal/hold", "internal/shown", "locker"},
	"internal/hold":                  {"", "session/client"},
	"keys":                           {""},
	"presence":                       {"", "keep"},
	"shard":                          {"", "internal/hold", "internal/shown", "presence"},
	"barrier":                        {"", "internal/shown"},
	"counter":                        {""},
	"internal/lab/fakelock":          {"locker"},
	"locker":                         {}, // a module of its own: see modules_test.go
	"locker/lockertest":              {"locker"},
	"mortisetest":                    {"", "internal/clock", "internal/memnet", "internal/outside"},
	"fence":                          {""},
	"fence/grpcfence":                {"", "fence", "google.golang.org/grpc/..."},
	"fence/fencetest":                {"", "fence"},
	"examples/quickstart":            {""},
	"examples/service":               {""},
	"examples/leader":                {"", "election"},
	"examples/cron":                  {"", "tick"},
	"examples/importer":              {""},
	"examples/recipes":               {},
	"examples/comingfrom":            {},
	"examples/hosts":                 {},
	"examples/tutorial":              {"", "fence"},
	"internal/lab/process":           {""},
	"internal/lab/proctest":          {},
	"internal/lab/proctest/instance": {"", "internal/outside"},
	"internal/lab/proctest/attack": {
		"", "internal/credentials", "internal/guest", "internal/history", "internal/lab/proctest/attack/...",
		"transport/...", "golang.org/x/sys/unix",
	},
	"internal/lab/proctest/attack/plan": {"", "internal/capability", "internal/credentials", "internal/guest"},
	"internal/lab/proctest/attack/attackers": {
		"", "internal/lab/attack", "internal/credentials", "internal/guest", "internal/nodeid",
		"internal/lab/proctest/attack/plan", "lockfsm", "session", "transport/...",
		"go.etcd.io/raft/v3/raftpb", "google.golang.org/protobuf/...",
	},
	"internal/lab/attack": {"internal/formats", "internal/nodeid", "lockfsm", "transport/...",
		"google.golang.org/grpc/...", "google.golang.org/protobuf/..."},
	"internal/lab/mutants":  {},
	"internal/lab/shrink":   {},
	"internal/lab/timeline": {"internal/history"},
	"internal/lab/sim": {
		"lockfsm", "cluster", "cluster/founding", "cluster/gossip", "cluster/lead", "cluster/voters", "session",
		"session/client", "session/keeper", "session/stay", "raftlog", "internal/clock", "internal/lab/check",
		"internal/history", "internal/nodeid", "internal/lab/nodeidtest", "internal/replica", "internal/lab/shrink",
		"internal/lab/timeline", "internal/capability", "internal/modes", "go.etcd.io/raft/v3/raftpb",
		"google.golang.org/protobuf/...",
	},
	"internal/lab/mutants/catch":    {"internal/lab/mutants", "internal/lab/mutants/binaries"},
	"internal/lab/mutants/foreign":  {"internal/lab/mutants", "internal/lab/mutants/binaries", "internal/lab/policy"},
	"internal/lab/mutants/overlay":  {"internal/lab/mutants"},
	"internal/lab/mutants/binaries": {},
	"internal/lab/sometimes":        {"internal/lab/policy"},
	"cmd/mortise": {
		"", "console", "fence", "lockfsm", "transport", "transport/wire/...", "internal/capability",
		"internal/credentials", "internal/guest", "internal/lapse", "internal/nodeid", "internal/outside",
		"internal/plain", "internal/shown", "internal/queries", "internal/tofu",
		"golang.org/x/sys/unix",
	},
	"internal/lab/publish":    {},
	"internal/tofu":           {"", "internal/plain", "internal/shown", "lockfsm"},
	"internal/lab/trio":       {"", "internal/lab/leftover"},
	"internal/lab/leftover":   {},
	"internal/lab/browser":    {"internal/lab/leftover"},
	"internal/lab/record":     {},
	"internal/lab/try":        {"internal/lab/sim"},
	"internal/lab/try/wasm":   {"internal/lab/try", "internal/lab/sim"},
	"internal/lab/try/replay": {"internal/lab/try"},
	"internal/lab/try/page":   {},
	"internal/lab/try/serve":  {"internal/lab/try/page"},
	"internal/lab/size":       {"internal/lab/uses"},
	"internal/lab/uses":       {},
	"internal/lab/slow":       {},
	"internal/lab/postgres":   {},
}

// onlyIn names the only file or package that may import some packages, so that they can be
// replaced.
var onlyIn = map[string]string{
	"github.com/hashicorp/memberlist": "cluster/gossip/swim",
	"go.etcd.io/bbolt":                "raftlog/storage/meta.go",
}

// ships reports whether a package may be part of a program that uses mortise. The packages below
// internal/lab are for tests and measurements.
func ships(pkg string) bool { return pkg != "internal/lab" && !strings.HasPrefix(pkg, "internal/lab/") }

func permitted(list []string, path string) bool {
	local, ours := strings.CutPrefix(path, module)
	local = strings.TrimPrefix(local, "/")
	for _, entry := range list {
		target := path
		if first, _, _ := strings.Cut(entry, "/"); ours && !strings.Contains(first, ".") {
			target = local
		} else if ours {
			continue
		}
		if prefix, deep := strings.CutSuffix(entry, "/..."); deep &&
			(target == prefix || strings.HasPrefix(target, prefix+"/")) || entry == target {
			return true
		}
	}
	return false
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	_, files := sources(t)
	for _, s := range files {
		list, known := allowed[s.pkg]
		if strings.HasPrefix(s.pkg, "transport/") {
			list, known = allowed["transport"], true // packages of generated code
		}
		if !known {
			t.Errorf("%s: the package %q is not in the table of internal/lab/policy: say there what it may import", s.path,
				s.pkg)
			continue
		}
		if s.test {
			continue // tests may import test networks and other packages
		}
		for _, path := range s.imports() {
			if ships(s.pkg) && !ships(strings.TrimPrefix(path, module+"/")) {
				t.Errorf("%s imports %s, which only tests may: internal/lab does not ship", s.path, path)
			}
			if !standard(path) && !permitted(list, path) {
				t.Errorf("%s imports %s, which the package %q may not: move the code to the package that may, or pass a value in",
					s.path, path, s.pkg)
			}
			if only := onlyIn[path]; only != "" && s.path != only && s.pkg != only {
				t.Errorf("%s imports %s, which only %s may", s.path, path, only)
			}
		}
	}
}

func TestImportRuleRefuses(t *testing.T) {
	for _, c := range []struct {
		pkg, path string
		want      bool
	}{
		{"lockfsm", module + "/session", false},
		{"lockfsm", "go.etcd.io/raft/v3", false},
		{"session", module + "/lockfsm", true},
		{"session", module + "/raftlog", false},
		{"raftlog", module + "/lockfsm", false},
		{"raftlog", "go.etcd.io/raft/v3/raftpb", true},
		{"cluster", module + "/transport", false},
		{"examples/quickstart", module, true},
		{"examples/quickstart", module + "/session", false},
		{"", "google.golang.org/grpc", false},
		{"locker", module, false},
		{"", module + "/locker", true},
		{"", module + "/fence", false},
		{"fence", module, true},
		{"fence", module + "/session", false},
		{"fence", "google.golang.org/grpc", false},
		{"fence/grpcfence", "google.golang.org/grpc/metadata", true},
	} {
		if got := permitted(allowed[c.pkg], c.path); got != c.want {
			t.Errorf("package %q importing %s: permitted %v, want %v", c.pkg, c.path, got, c.want)
		}
	}
}

func TestTheWorkshopDoesNotShip(t *testing.T) {
	for pkg, want := range map[string]bool{
		"": true, "internal/label": true, "internal/memnet": true, "internal/lab/sim": false, "internal/lab": false,
	} {
		if ships(pkg) != want {
			t.Errorf("package %q ships: %v, want %v", pkg, !want, want)
		}
	}
}
