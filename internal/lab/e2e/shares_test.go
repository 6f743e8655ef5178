package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sharesOf has the tests of this package that start a fleet, by what they do, directly or through
// their helpers.
type sharesOf struct {
	fleets, faults, sessions map[string]bool
}

// sources is the directory of this package. A test may change the working directory.
var sources, _ = os.Getwd()

// shares reads the sources of this package.
var shares = sync.OnceValue(func() (s sharesOf) {
	uses, own := map[string]map[string]bool{}, map[string]map[string]bool{}
	names, err := filepath.Glob(filepath.Join(sources, "*_test.go"))
	if err != nil || len(names) == 0 {
		panic("the sources of the tests are missing")
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, to := range []map[string]map[string]bool{uses, own} {
				if to[f.Name.Name] == nil {
					to[f.Name.Name] = map[string]bool{}
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "strings" {
						return false // strings.Cut is no fault
					}
				}
				if id, ok := n.(*ast.Ident); ok {
					uses[f.Name.Name][id.Name] = true
					if name != "second_test.go" {
						own[f.Name.Name][id.Name] = true
					}
				}
				return true
			})
		}
	}
	s.fleets = reaching(uses, "newFleet")
	s.faults = reaching(uses, "Cut", "CutOneWay", "SetLoss", "Reset", "Crash", "startFaulty", "suspend")
	s.sessions = reaching(own, "NewSession")
	for _, all := range []map[string]bool{s.faults, s.sessions} {
		for test := range all {
			if !s.fleets[test] {
				delete(all, test)
			}
		}
	}
	return s
})

// reaching returns the tests that use one of the names, directly or through other functions.
func reaching(uses map[string]map[string]bool, names ...string) map[string]bool {
	users := map[string][]string{}
	for user, all := range uses {
		for name := range all {
			users[name] = append(users[name], user)
		}
	}
	seen, tests := map[string]bool{}, map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		if seen[name] = true; strings.HasPrefix(name, "Test") {
			tests[name] = true
		}
		names = append(names, users[name]...)
	}
	return tests
}

// A third of the tests of whole nodes take locks in sessions of NewSession, and some tests with
// faults run with all Hooks and with certificates.
func TestSharesOfTheTests(t *testing.T) {
	s := shares()
	seconds, varied := 0, map[string]int{}
	for test := range s.fleets {
		if s.sessions[test] || drawnForSeconds(test) {
			seconds++
		}
		if v := varietyOf(test); s.faults[test] && undisturbed[v][test] == "" {
			varied[v]++
		}
	}
	t.Logf("%d tests start a fleet, %d have faults; %d take locks in own sessions; %v", len(s.fleets), len(s.faults),
		seconds, varied)
	if 3*seconds < len(s.fleets) {
		t.Errorf("%d of %d tests take locks in sessions of their own, less than a third", seconds, len(s.fleets))
	}
	for _, v := range []string{hooked, certified} {
		if varied[v] < 5 {
			t.Errorf("%d tests with faults run with %s, want at least 5", varied[v], v)
		}
	}
	for v, tests := range undisturbed {
		for test, why := range tests {
			if !s.fleets[test] || why == "" {
				t.Errorf("undisturbed[%q] has %s, which starts no fleet or has no reason", v, test)
			}
		}
	}
}
