package policy

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// notProduct matches the packages with texts for developers of mortise.
var notProduct = regexp.MustCompile(`^(internal/lab|examples|bench)(/|$)`)

// textKinds determines the kind of a text by the function that receives the text. The first
// matching pattern applies. The table omits texts of the kind "-". The kind "" means the kind of
// the enclosing call.
var textKinds = []struct {
	function *regexp.Regexp
	kind     string
}{
	{regexp.MustCompile(`^(strings\.(Cut|Contains|Has|Index|Split|Trim|Count)\w*|bytes\.\w+|regexp\.\w+|` +
		`mux\.\w+|flag\.\w+|fs\.\w+|.*\.Format|.*\.Header\(\)\.Set)$`), "-"},
	{regexp.MustCompile(`^(fmt\.(Sprint|Append)\w*|plain\.\w+|strings\.\w+|cmp\.Or|append|string|\[\]byte)$`), ""},
	{regexp.MustCompile(`(^|\.)[tT]\.(Error|Fatal|Log|Run)f?$`), "test"},
	{regexp.MustCompile(`^(errors\.New|fmt\.Errorf|status\.Errorf?|http\.Error)$`), "error"},
	{regexp.MustCompile(`(^|\.)(usageError|bad|wrong|add|[fF]ault|missing|malformed|unknown|explain|` +
		`refuse|refusal|broken|fail|no|noCertificate)$`), "error"},
	{regexp.MustCompile(`^panic$`), "panic"},
	{regexp.MustCompile(`\.Debug$`), "debug"},
	{regexp.MustCompile(`\.[iI]nfo$`), "info"},
	{regexp.MustCompile(`\.([wW]arn|warnOf)$`), "warn"},
	{regexp.MustCompile(`\.(Error|panicked)$`), "error log"},
}

// collect finds the texts below a node. For each text, it calls add with the kind of the text. A
// text is a string literal with at least two words, or the message of a log call. In a sum of
// strings, "…" replaces each variable.
func collect(n ast.Node, kind string, add func(kind, text string)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false
		case *ast.FuncLit:
			collect(n.Body, "status", add)
			return false
		case *ast.CallExpr:
			collect(n.Fun, kind, add)
			inside := "status"
			for _, k := range textKinds {
				if k.function.MatchString(types.ExprString(n.Fun)) {
					inside = cmp.Or(k.kind, kind)
					break
				}
			}
			for i, arg := range n.Args {
				if text, ok := joined(arg); ok && i == 0 && inside != "status" && inside != "error" {
					add(inside, text) // even if it is a single word, such as the log message "leading"
				} else {
					collect(arg, inside, add)
				}
			}
			return false
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				addText(kind, sum(n, func(variable ast.Expr) { collect(variable, kind, add) }), add)
			}
			return n.Op == token.LAND || n.Op == token.LOR
		case *ast.BasicLit:
			text, _ := joined(n)
			addText(kind, text, add)
		}
		return true
	})
}

func addText(kind, text string, add func(kind, text string)) {
	if strings.Contains(strings.TrimSpace(text), " ") {
		add(kind, text)
	}
}

// sum returns the text of a sum of strings. For each operand that is not a literal, the text
// contains "…", and the callback gets the operand.
func sum(e ast.Expr, variable func(ast.Expr)) string {
	if b, is := e.(*ast.BinaryExpr); is && b.Op == token.ADD {
		return sum(b.X, variable) + sum(b.Y, variable)
	}
	if text, ok := joined(e); ok {
		return text
	}
	variable(e)
	return "…"
}

var verb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)

func textTable(files []source) string {
	var table strings.Builder
	pkgs := map[string][]source{}
	for _, s := range files {
		if !s.test && !s.generated && !notProduct.MatchString(s.pkg) {
			pkgs[s.pkg] = append(pkgs[s.pkg], s)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(pkgs)) {
		seen := map[string]bool{}
		for _, s := range pkgs[pkg] {
			collect(s.file, "status", func(kind, text string) {
				row := "| " + kind + " | " + strings.NewReplacer("|", "\\|", "\n", "\\n").Replace(text) + " |\n"
				// A script contains a tab, and the input of a hash contains a zero byte.
				if kind == "-" || seen[row] || strings.ContainsAny(text, "\t\x00") ||
					!strings.ContainsFunc(verb.ReplaceAllString(text, ""), unicode.IsLetter) {
					return
				}
				if len(seen) == 0 {
					fmt.Fprintf(&table, "\n## %s\n\n| kind | text |\n|---|---|\n", cmp.Or(pkg, "mortise"))
				}
				seen[row] = true
				table.WriteString(row)
			})
		}
	}
	return table.String()
}

const textIntro = `# Texts

Every text in product code that a person may see: errors, log messages, panics, and as "status" all
other texts of two words, such as a state, a reason or an answer. "…" stands for a variable. The
table is written by ` + "`MORTISE_TEXTS_KEEP=1 go test -run TestTextsAreListed ./internal/lab/policy`" + `.
`

// testdata/texts.md must list all texts of the product, so that a reader can read them together.
func TestTextsAreListed(t *testing.T) {
	_, files := sources(t)
	path, table := filepath.Join("testdata", "texts.md"), textIntro+textTable(files)
	if os.Getenv("MORTISE_TEXTS_KEEP") != "" {
		if err := os.WriteFile(path, []byte(table), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(table, "\n| ") < 1000 {
		t.Error("the table is too short to have all texts: the rule would pass because it sees nothing")
	}
	if string(kept) == table {
		return
	}
	before, after := strings.Split(string(kept), "\n"), strings.Split(table, "\n")
	for _, row := range after {
		if !slices.Contains(before, row) {
			t.Errorf("a new text: %s", row)
		}
	}
	for _, row := range before {
		if !slices.Contains(after, row) {
			t.Errorf("a text is gone: %s", row)
		}
	}
	t.Errorf("internal/lab/policy/%s is not the table of the texts; write it anew, and read the new texts in it:\n"+
		"MORTISE_TEXTS_KEEP=1 go test -run TestTextsAreListed ./internal/lab/policy", path)
}
