package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A marker is a habit of prose that a native reader notices as wrong.
type marker struct {
	name    string
	habit   *regexp.Regexp
	instead string
}

func markers() []marker {
	return []marker{
		{"who", regexp.MustCompile(`(?i)\bwhoever\b|^who [a-z' ]+[^?]$|` +
			`\b(those|he|she|one|anyone|everyone|all|by|for|of|to|from|with|when|and|that|what|than|if|whom|as|or|but|how) ` +
			`who\b`), "name the thing: it is not a person"},
		{"somebody", regexp.MustCompile(`(?i)\b(some|no|every|any)body\b`),
			"name the thing: another instance, no voter, every replica"},
		{"he", regexp.MustCompile(`(?i)\b(he|him|his|himself)\b`), "a process, a call or a lock is it"},
		{"fronted of", regexp.MustCompile(`(?i)(^|[,;:(] ?)` +
			`of (which|whom|whose|several|two|three|many|those|these|all|each|both)\b`),
			"begin with what the sentence is about"},
		{"zero value", regexp.MustCompile(`(?i); (0|nil|zero|empty|""|none|false): `),
			"write a sentence: Zero means none"},
		{"verb", regexp.MustCompile(`(?i)\b(heeds?|heeded|bears?|knows? of|takes? that|for ever|so that who)\b`),
			"use the verbs of the field: returns, reports, blocks, ignores"},
	}
}

// Maximum width of a line in characters.
const (
	maxProse = 100 // comments and documents
	maxCode  = 120
)

type finding struct {
	path    string
	line    int
	rule    string
	text    string
	instead string // advice
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s: %q", f.path, f.line, f.rule, f.text) }

type prose struct {
	line int
	text string
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*\s+|\n\s*\n|\n\s*[-*•]\s|\n?\s*\|\s*`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
)

func sentences(text string) []string {
	var all []string
	for len(text) > 0 {
		end := sentenceEnd.FindStringIndex(text)
		if end == nil {
			end = []int{len(text), len(text)}
		}
		sentence := strings.Join(strings.Fields(text[:end[0]]+strings.TrimSpace(text[end[0]:end[1]])), " ")
		if strings.ContainsFunc(sentence, unicode.IsLetter) {
			all = append(all, sentence)
		}
		text = text[end[1]:]
	}
	return all
}

func judge(path string, of []marker, p prose) (found []finding, count int) {
	line := p.line
	for _, s := range sentences(codeSpan.ReplaceAllString(p.text, "x")) {
		count++
		for _, m := range of {
			if m.habit.MatchString(s) {
				found = append(found, finding{path, line, m.name, s, m.instead})
			}
		}
	}
	return found, count
}

// proseOf returns the comments, the strings and the names of tests of a Go file, except constant
// regular expressions.
func proseOf(set *token.FileSet, file *ast.File) (comments, others []prose) {
	for _, group := range file.Comments {
		var text strings.Builder
		for line := range strings.Lines(group.Text()) {
			if !strings.HasPrefix(line, "\t") { // a tab begins a block of code
				text.WriteString(line)
			}
		}
		comments = append(comments, prose{set.Position(group.Pos()).Line, text.String()})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if f, is := n.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "MustCompile" {
				return false
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && err == nil && strings.Contains(text, " ") {
				others = append(others, prose{set.Position(n.Pos()).Line, text})
			}
		case *ast.FuncDecl:
			if name, is := strings.CutPrefix(n.Name.Name, "Test"); is && n.Recv == nil {
				others = append(others, prose{set.Position(n.Pos()).Line, words(name)})
			}
		}
		return true
	})
	return comments, others
}

func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// widths returns the lines that are too wide, except table rows, links and lines for tools.
func widths(path, text string) (found []finding) {
	code, number := filepath.Ext(path) == ".go", 0
	block := false
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		columns := utf8.RuneCountInString(line)
		if strings.HasPrefix(trimmed, "```") {
			block = !block
		}
		rule, most := "wide line of prose", maxProse
		if code && !strings.HasPrefix(trimmed, "//") || block {
			rule, most = "wide line of code", maxCode
		}
		if columns > most && !strings.HasPrefix(trimmed, "|") && !strings.Contains(trimmed, "](") &&
			!strings.Contains(trimmed, "://") && !strings.HasPrefix(trimmed, "//go:") {
			found = append(found, finding{path, number, rule, line, "break it"})
		}
	}
	return found
}

var mostName = regexp.MustCompile(`^[a-z]\w*(Most|Max)$`)

func names(path string, set *token.FileSet, file *ast.File) (found []finding) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, id := range spec.Names {
				if mostName.MatchString(id.Name) {
					found = append(found, finding{path, set.Position(id.Pos()).Line, "name",
						id.Name, "call it maxXxx"})
				}
			}
		}
		return true
	})
	return found
}

func hashComments(text string) (all []prose) {
	number := 0
	var open *prose
	for line := range strings.Lines(text) {
		number++
		comment, is := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !is || strings.HasPrefix(comment, "!") {
			open = nil
			continue
		}
		if open == nil {
			all = append(all, prose{line: number})
			open = &all[len(all)-1]
		}
		open.text += comment + "\n"
	}
	return all
}

var fence = regexp.MustCompile("(?s)```.*?```")

type survey struct {
	findings  []finding
	comments  int // number of sentences in comments
	inComment int // number of findings in comments
}

// surveyOf reads all texts below a directory. It skips generated files and the directories .git,
// testdata, edits and node_modules.
func surveyOf(dir string, of []marker) (survey, error) {
	var s survey
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != dir && (name == ".git" || name == "testdata" || name == "edits" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		found, err := s.read(filepath.ToSlash(rel), string(text), of)
		s.findings = append(s.findings, found...)
		return err
	})
	return s, err
}

func (s *survey) read(path, text string, of []marker) (found []finding, err error) {
	var texts []prose
	switch {
	case filepath.Ext(path) == ".go":
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return nil, err
		}
		comments, others := proseOf(set, file)
		for _, p := range comments {
			in, count := judge(path, of, p)
			found, s.comments, s.inComment = append(found, in...), s.comments+count, s.inComment+len(in)
		}
		texts = others
		found = append(found, names(path, set, file)...)
	case filepath.Ext(path) == ".md":
		texts = []prose{{1, fence.ReplaceAllString(text, "")}}
	case strings.HasPrefix(text, "#!") || filepath.Ext(path) == ".yml" || filepath.Ext(path) == ".yaml":
		texts = hashComments(text)
	default:
		return nil, nil
	}
	for _, p := range texts {
		in, _ := judge(path, of, p)
		found = append(found, in...)
	}
	return append(found, widths(path, text)...), nil
}

type exception struct {
	path   string
	text   string // a part of the finding
	reason string
}

var exceptions = []exception{
	{"adapters/mortiseotel/alerts.yml", `kind!~"election|tick|job"}[10m]`,
		"a selector of PromQL has no space at which YAML could fold it"},
	{"adapters/mortiseotel/alerts.yml", `outcome=~"queue_full|overloaded|not_ready|failed"}[5m]`,
		"a selector of PromQL has no space at which YAML could fold it"},
}

const maxExceptions = 20

// This function separates the findings that have no exception from those that have one. Each
// exception applies to only one finding. The exceptions that apply to no finding are also
// returned.
func without(excused []exception, found []finding) (left, stay []finding, unused []exception) {
	used := map[exception]bool{}
	for _, f := range found {
		i := slices.IndexFunc(excused, func(e exception) bool {
			return !used[e] && e.path == f.path && strings.Contains(f.text, e.text)
		})
		if i < 0 {
			left = append(left, f)
			continue
		}
		stay, used[excused[i]] = append(stay, f), true
	}
	for _, e := range excused {
		if !used[e] {
			unused = append(unused, e)
		}
	}
	return left, stay, unused
}

// TestWordsArePlain checks the rules of prose for all packages and folders.
//
//	go test -run TestWordsArePlain ./internal/lab/policy    each finding
//	MORTISE_WORDS=lockfsm go test ...                   only those of a package
//	MORTISE_WORDS=all go test -v ...                    all, and the exceptions
//	MORTISE_WORDS_OF=DIR go test -v ...                 the rate of another code base
func TestWordsArePlain(t *testing.T) {
	of := markers()
	if dir := os.Getenv("MORTISE_WORDS_OF"); dir != "" {
		s, err := surveyOf(dir, of)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d markers in %d sentences of comments: %.1f in 1,000", s.inComment, s.comments,
			1000*float64(s.inComment)/float64(s.comments))
		return
	}
	s, err := surveyOf(root, of)
	if err != nil {
		t.Fatal(err)
	}
	if s.comments < 10_000 {
		t.Fatalf("found only %d sentences: the rules would pass because they see nothing", s.comments)
	}
	show := os.Getenv("MORTISE_WORDS")
	left, stay, unused := without(exceptions, s.findings)
	for _, f := range left {
		if show == "" || show == "all" || show == path.Dir(f.path) {
			t.Errorf("%s (%s)", f, f.instead)
		}
	}
	for _, f := range stay {
		if show == "all" {
			t.Logf("may stay: %s", f)
		}
	}
	for _, e := range unused {
		t.Errorf("%s: no finding has %q any more: delete the exception", e.path, e.text)
	}
	if len(exceptions) > maxExceptions {
		t.Errorf("%d exceptions, at most %d may be", len(exceptions), maxExceptions)
	}
	for _, e := range exceptions {
		if e.reason == "" {
			t.Errorf("%s: the exception %q has no reason", e.path, e.text)
		}
	}
	t.Logf("%d places that are not plain, and %d exceptions, in %d sentences of comments and all other texts",
		len(left), len(stay), s.comments)
}

// The sentences are in a file that the rules do not read.
func TestWordRuleCatches(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "markers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		want, sentence, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("%q is not a marker and a sentence", line)
		}
		seen[want] = true
		got := "none"
		if found, _ := judge("x", markers(), prose{1, sentence}); len(found) > 0 {
			got = found[0].rule
		}
		if got != want {
			t.Errorf("%q: found %q, want %q", sentence, got, want)
		}
	}
	for _, m := range markers() {
		if !seen[m.name] {
			t.Errorf("no sentence shows %q", m.name)
		}
	}
	if len(widths("x.go", "\t// "+strings.Repeat("x", 100))) != 1 ||
		len(widths("x.md", "| "+strings.Repeat("x", 200))) != 0 {
		t.Error("the width of lines is not seen, or that of a table")
	}
}

func TestExceptionsExcuseOnePlace(t *testing.T) {
	a, b := exception{"x.go", "one", "because"}, exception{"y.go", "one", "because"}
	left, stay, unused := without([]exception{a, b}, []finding{{path: "x.go", text: "this one"},
		{path: "x.go", text: "one more"}, {path: "x.go", text: "another"}, {path: "z.go", text: "this one"}})
	if len(left) != 3 || len(stay) != 1 || stay[0].path != "x.go" || !slices.Equal(unused, []exception{b}) {
		t.Errorf("%v, %v, %v", left, stay, unused)
	}
}
