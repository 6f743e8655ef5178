package main

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// goNames returns a pattern of the names of Go that a text for other readers must not contain: the
// exported names of the library that no sentence has otherwise.
func goNames(t *testing.T) *regexp.Regexp {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	types, names := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				types[n.Name.Name] = ast.IsExported(n.Name.Name)
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	maps.DeleteFunc(types, func(_ string, exported bool) bool { return !exported })
	several := func(name string) bool { // a word of several parts, which English does not have
		last := strings.LastIndexFunc(name, unicode.IsUpper)
		return ast.IsExported(name) && last > 0 && strings.ContainsFunc(name, unicode.IsLower)
	}
	words := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		return !several(name) || name == "IDs"
	})
	if len(words) < 100 || len(types) < 30 {
		t.Fatalf("%d names and %d types: the test would see nothing", len(words), len(types))
	}
	return regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(types)), "|") + `)\.[A-Z]\w*|` +
		`\b(` + strings.Join(words, "|") + `)\b|\b\w+\.[A-Z]\w*\(|\(ctx\)|context\.\w+\(|\bmortise: `)
}

// TestTextsAreForTheirReaders checks that no text of the library that a command or the agent prints
// contains a name of Go. The texts are those of the list that the policy tests keep.
func TestTextsAreForTheirReaders(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "internal", "lab", "policy", "testdata", "texts.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reach := regexp.MustCompile(`^(mortise|cluster.*|session.*|transport|raftlog|lockfsm|cmd/mortise|` +
		`internal/(capability|credentials|guest|instance|queries|replica|tofu|variables))$`)
	names, quoted, pkg, seen := goNames(t), regexp.MustCompile(`"[^"]*"`), "", 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if heading, is := strings.CutPrefix(lines.Text(), "## "); is {
			pkg = heading
		}
		kind, text, is := strings.Cut(strings.Trim(lines.Text(), "| "), " | ")
		if !is || kind != "error" && kind != "status" || !reach.MatchString(pkg) {
			continue
		}
		for to, whose := range []string{"operators", "programs"} {
			seen++
			own := sentence(text, reader(to))
			if found := names.FindString(quoted.ReplaceAllString(own, "")); found != "" {
				t.Errorf("%s, for %s: %q is Go in\n%s", pkg, whose, found, own)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("%d texts: the test sees too little", seen)
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string][2]string{
		`mortise: lock "mortise: Node.Lock": context deadline exceeded (when this request was queued, this instance ` +
			`itself held it; to enter a lock again, pass lock.Context(ctx))`: {
			`lock "mortise: Node.Lock": context deadline exceeded (when this request was queued, this instance itself ` +
				`held it: unlock it first; it cannot be entered again from here)`, ""},
		"mortise: bad request: mortise: LockDelay is 2": {
			"bad request: -lock-delay is 2", "bad request: lock_delay_seconds is 2"},
		"mortise: bad request: mortise: Mode is Permits(3, 2)": {
			"bad request: -mode is permits(3, 2)", "bad request: mode is permits(3, 2)"},
		"restart every instance whose Founders differ (differs shows them), one at a time and with Leave": {
			"restart every instance whose MORTISE_FOUNDERS differ (mortise doctor shows them), one at a time, each " +
				"stopped with SIGTERM", ""},
		"mortise: Config.Dir: is set": {"MORTISE_DIR: is set", ""},
	} {
		for to, want := range want {
			if got := sentence(text, reader(to)); want != "" && got != want {
				t.Errorf("%q\n%q, want\n%q", text, got, want)
			}
		}
	}
}
