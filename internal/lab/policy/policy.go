// Package policy contains the rules of this repository as tests: for example permitted imports, the
// purity of cores, the length of functions, documentation, and correct names, quotes and snippets
// in docs.
//
// The tests read the source as text and syntax, without nested modules. They report a violation
// with its file and line and with advice. To change a rule, change it here and give the reason.
// Refused alternative: a linter, because it has no list of this module's packages.
package policy

import (
	"slices"
	"strings"
)

// IsCore reports whether a file of a package belongs to a core, which has no goroutine, clock or
// socket. The package is a directory below the root. In cluster and raftlog, the names of the
// core's files begin with "core". In session/client and session/keeper, all files belong to the
// core except those listed here.
func IsCore(pkg, file string) bool {
	switch pkg {
	case "lockfsm", "cluster/founding", "cluster/lead", "cluster/voters", "internal/capability":
		return true
	case "session", "session/stay":
		return true
	case "session/client":
		return !slices.Contains([]string{"client.go", "inbox.go", "hold.go", "release.go", "regain.go",
			"downgrade.go", "upgrade.go", "kept.go", "waiter.go", "part.go", "set.go",
			"limit.go", "idle.go", "idleholds.go"}, file)
	case "session/keeper":
		return file != "keeper.go"
	case "cluster", "raftlog":
		return strings.HasPrefix(file, "core")
	}
	return false
}
