package policy

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A marker is a habit of prose that a native reader stumbles over. The markers are the ones that a
// review counted in this repository beside model code bases, whose authors do without them.
type marker struct {
	name    string
	habit   *regexp.Regexp
	instead string
}

// markers are looked for in comments, strings, test names, documents and scripts.
func markers() []marker {
	return []marker{
		{"who", regexp.MustCompile(`(?i)\bwhoever\b|\b(those|he|she|one|anyone|everyone|all|by|for|of|to|from|with|when|and|that|what|than|if|whom|as|or|but|how) who\b|^who [a-z' ]+[^?]$`), "name the thing: it is not a person"},
		{"somebody", regexp.MustCompile(`(?i)\b(some|no|every|any)body\b`),
			"name the thing: another instance, no voter, every replica"},
		{"he", regexp.MustCompile(`(?i)\b(he|him|his|himself)\b`), "a process, a call or a lock is it"},
		{"of which", regexp.MustCompile(`(?i)(^|[,;:(] ?)of (which|whom|whose|several|two|three|many|those|these|all|each|both)\b`), "begin with what the sentence is about"},
		{"zero value", regexp.MustCompile(`(?i); (0|nil|zero|empty|""|none|false): `),
			"write a sentence: Zero means none"},
		{"verb", regexp.MustCompile(`(?i)\b(heeds?|heeded|bears?|knows? of|takes? that|for ever|so that who)\b`),
			"use the verbs of the field: returns, reports, blocks, ignores"},
	}
}

// The width of a line in characters.
const (
	maxProse = 100 // comments and documents
	maxCode  = 120
)

// A finding is one place that breaks a rule of words.
type finding struct {
	path string
	line int
	rule string
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s: %q", f.path, f.line, f.rule, f.text) }

// prose is text for people, with the place where it begins.
type prose struct {
	line int
	text string
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*\s+|\n\s*\n|\n\s*[-*•]\s|\n?\s*\|\s*`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
)

// sentences cuts a text where a sentence, a paragraph, an item or a cell of a table ends.
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

// judge returns the markers in the sentences of a text, and how many sentences it has.
func judge(path string, of []marker, p prose) (found []finding, count int) {
	line := p.line
	for _, s := range sentences(codeSpan.ReplaceAllString(p.text, "x")) {
		count++
		for _, m := range of {
			if m.habit.MatchString(s) {
				found = append(found, finding{path, line, m.name, s})
			}
		}
	}
	return found, count
}

// proseOf returns the comments, the strings and the names of tests of a Go file.
func proseOf(set *token.FileSet, file *ast.File) (comments, others []prose) {
	for _, group := range file.Comments {
		var text strings.Builder
		for line := range strings.Lines(group.Text()) {
			if !strings.HasPrefix(line, "\t") { // a block of code
				text.WriteString(line)
			}
		}
		comments = append(comments, prose{set.Position(group.Pos()).Line, text.String()})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
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

// words parts a name in mixed capitals.
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

// widths returns the lines that are too wide. Rows of tables, links and what a tool reads are let
// be, since they cannot be broken.
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
			found = append(found, finding{path, number, rule, line})
		}
	}
	return found
}

// mostName is a name that says most where the field says max.
var mostName = regexp.MustCompile(`^[a-z]\w*Most$`)

// names returns what is declared under a name that breaks a rule.
func names(path string, set *token.FileSet, file *ast.File) (found []finding) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, id := range spec.Names {
				if mostName.MatchString(id.Name) {
					found = append(found, finding{path, set.Position(id.Pos()).Line, "name: maxXxx", id.Name})
				}
			}
		}
		return true
	})
	return found
}

// hashComments returns the comments of a script or of a file that is written like one.
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

// survey is what all texts below a directory say: findings and sentences, by package or folder.
type survey struct {
	findings  map[string][]finding
	comments  int // sentences of comments
	inComment int // findings in them
}

// surveyOf reads all texts below a directory. Generated files, recorded ones and nested modules of
// others are left out.
func surveyOf(dir string, of []marker) (survey, error) {
	s := survey{findings: map[string][]finding{}}
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
		rel = filepath.ToSlash(rel)
		found, err := s.read(rel, string(text), of)
		if len(found) > 0 {
			room := filepath.ToSlash(filepath.Dir(rel))
			s.findings[room] = append(s.findings[room], found...)
		}
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

// ceilings reads how many findings each package or folder may have.
func ceilings(path string) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	most, lines := map[string]int{}, bufio.NewScanner(file)
	for lines.Scan() {
		var room string
		var count int
		if _, err := fmt.Sscan(lines.Text(), &room, &count); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		most[room] = count
	}
	return most, lines.Err()
}

// TestWordsArePlain holds the rules of prose that a machine can see. What was there before the
// rules is counted for each package in testdata/words.txt, and may only become less.
//
//	go test -run TestWordsArePlain ./internal/policy -v      the counts
//	MORTISE_WORDS=lockfsm go test ...                        each finding in a package ("all": in all)
//	MORTISE_WORDS_OF=DIR go test -v ...                      the rate of another code base
//	MORTISE_WORDS_KEEP=1 go test ...                         write today's counts down
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
	ceiling := filepath.Join("testdata", "words.txt")
	most, err := ceilings(ceiling)
	if err != nil {
		t.Fatal(err)
	}
	all, byRule := 0, map[string]int{}
	var counts strings.Builder
	for _, room := range slices.Sorted(maps.Keys(s.findings)) {
		found := s.findings[room]
		all += len(found)
		for _, f := range found {
			byRule[f.rule]++
		}
		fmt.Fprintf(&counts, "%s %d\n", room, len(found))
		show := os.Getenv("MORTISE_WORDS")
		if len(found) > most[room] && os.Getenv("MORTISE_WORDS_KEEP") == "" {
			t.Errorf("%s: %d places that are not plain, at most %d may be", room, len(found), most[room])
		}
		if show == "all" || show == room {
			for _, f := range found {
				t.Log(f)
			}
		}
	}
	t.Logf("%d places that are not plain; %d of them in %d sentences of comments: %.1f in 1,000; %v",
		all, s.inComment, s.comments, 1000*float64(s.inComment)/float64(s.comments), byRule)
	if os.Getenv("MORTISE_WORDS_KEEP") != "" {
		if err := os.WriteFile(ceiling, []byte(counts.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWordRuleCatches shows that each marker is seen, and what is not one.
func TestWordRuleCatches(t *testing.T) {
	for text, want := range map[string]string{
		"Who asks is told.":                           "who",
		"It is for those who wait.":                   "who",
		"Nobody waits.":                               "somebody",
		"The caller gives back all that he holds.":    "he",
		"There are three, of which one is dead.":      "of which",
		"The limit; 0: none.":                         "zero value",
		"It waits for ever.":                          "verb",
		"The operator, who sees it, restarts it.":     "",
		"The caller is told that the lock is held.":   "",
		"Who holds it?":                               "",
		"The replica that it belongs to has the rest": "",
	} {
		found, _ := judge("x", markers(), prose{1, text})
		got := ""
		if len(found) > 0 {
			got = found[0].rule
		}
		if got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
	if len(widths("x.go", "\t// "+strings.Repeat("x", 100))) != 1 ||
		len(widths("x.md", "| "+strings.Repeat("x", 200))) != 0 {
		t.Error("the width of lines is not seen, or that of a table")
	}
}
