package policy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var said = regexp.MustCompile("`([^`]+)`")

// quoteFaults returns the quotes that no message contains, and the number of rows. It looks at the
// first column of the tables below the heading.
func quoteFaults(page, heading string, literals []string) (faults []string, rows int) {
	_, section, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		return []string{"there is no section " + heading}, 0
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "it says" {
			continue
		}
		rows++
		fragments := said.FindAllStringSubmatch(cells[1], -1)
		if len(fragments) == 0 {
			faults = append(faults, "a row quotes nothing: "+strings.TrimSpace(line))
		}
		for _, f := range fragments {
			if len(f[1]) < 10 {
				faults = append(faults, fmt.Sprintf("%q is too short to be found", f[1]))
			} else if !slices.ContainsFunc(literals, func(l string) bool { return strings.Contains(l, f[1]) }) {
				faults = append(faults, fmt.Sprintf("nothing in the source says %q", f[1]))
			}
		}
	}
	return faults, rows
}

// quotedSentences returns the code spans outside tables that quote a message: code spans of four
// words or more that are not commands.
func quotedSentences(page string) (quotes []string) {
	var text strings.Builder
	for line := range strings.Lines(fenced.ReplaceAllString(page, "")) {
		if !strings.HasPrefix(strings.TrimSpace(line), "|") {
			text.WriteString(strings.TrimLeft(line, " "))
		}
	}
	for _, match := range said.FindAllStringSubmatch(text.String(), -1) {
		quote := strings.ReplaceAll(match[1], "\n", " ")
		if len(strings.Fields(quote)) >= 4 && !strings.Contains(quote, " -") && !strings.ContainsAny(quote, "=*") {
			quotes = append(quotes, quote)
		}
	}
	return quotes
}

func literalsOf(files []source) (literals []string) {
	for _, s := range files {
		if s.test || strings.HasPrefix(s.pkg, "internal/lab/sim") || strings.HasPrefix(s.pkg, "examples/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := joined(e)
			if ok {
				literals = append(literals, text)
			}
			return !ok
		})
	}
	return literals
}

func joined(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := joined(e.X)
		right, too := joined(e.Y)
		return left + right, ok && too && e.Op == token.ADD
	}
	return "", false
}

const messages = "Messages"

func TestQuotedMessagesAreSaid(t *testing.T) {
	_, files := sources(t)
	literals := literalsOf(files)
	faults, rows := quoteFaults(readPage(t, "OPERATION.md"), messages, literals)
	for _, fault := range faults {
		t.Errorf("docs/OPERATION.md: %s", fault)
	}
	quotes := quotedSentences(readPage(t, "OPERATION.md"))
	for _, quote := range quotes {
		if !slices.ContainsFunc(literals, func(l string) bool { return strings.Contains(l, quote) }) {
			t.Errorf("docs/OPERATION.md: nothing in the source says %q", quote)
		}
	}
	if len(quotes) < 8 {
		t.Errorf("docs/OPERATION.md quotes %d messages outside its tables, too few to be all", len(quotes))
	}
	if rows < 30 {
		t.Errorf("docs/OPERATION.md explains %d messages: the rule would pass because it sees nothing", rows)
	}
	for what, row := range map[string]string{
		"a message that no code writes": "| `no such thing was ever said` | it | that |",
		"a row without a quotation":     "| in its own words | it | that |",
		"a scrap":                       "| `a` | it | that |",
	} {
		if faults, _ := quoteFaults("\n## "+messages+"\n"+row+"\n", messages, literals); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
	}
}
