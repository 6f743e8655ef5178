package policy

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestOnePackageCommentPerDirectory(t *testing.T) {
	_, files := sources(t)
	comments := map[string][]string{}
	for _, s := range files {
		if s.test || s.generated {
			continue
		}
		list := comments[s.pkg]
		if s.file.Doc != nil {
			list = append(list, s.path)
		}
		comments[s.pkg] = list
	}
	for pkg, list := range comments {
		if len(list) != 1 {
			t.Errorf("directory %q has %d package comments %v, want one", pkg, len(list), list)
		}
	}
}

func TestEverythingExportedIsDocumented(t *testing.T) {
	set, files := sources(t)
	for _, s := range files {
		if s.test || s.generated || strings.HasPrefix(s.pkg, "examples/") {
			continue
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil && !obvious[d.Name.Name] {
					t.Errorf("%s: %s is exported and not documented", set.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					name, doc := specDoc(spec)
					if name != nil && name.IsExported() && doc == nil && d.Doc == nil {
						t.Errorf("%s: %s is exported and not documented", set.Position(spec.Pos()), name.Name)
					}
				}
			}
		}
	}
}

// obvious lists methods of well-known interfaces.
var obvious = map[string]bool{"Error": true, "String": true, "Unwrap": true, "Is": true}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	kind := d.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	name, ok := kind.(*ast.Ident)
	return !ok || name.IsExported()
}

func specDoc(spec ast.Spec) (*ast.Ident, *ast.CommentGroup) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Name, s.Doc
	case *ast.ValueSpec:
		if s.Doc == nil {
			return s.Names[0], s.Comment
		}
		return s.Names[0], s.Doc
	}
	return nil, nil
}

// The root's exported API may contain only types of the standard library, of the root and of module
// locker. So no user depends on raft, gRPC or memberlist.
func TestRootNamesNoDependency(t *testing.T) {
	set, files := sources(t)
	for _, s := range files {
		if s.pkg != "" || s.test {
			continue
		}
		foreign := map[string]string{}
		for _, i := range s.file.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			name := path[strings.LastIndex(path, "/")+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			if !standard(path) && path != module+"/locker" {
				foreign[name] = path
			}
		}
		for _, part := range exportedSignatures(s.file) {
			ast.Inspect(part, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := sel.X.(*ast.Ident); ok && foreign[x.Name] != "" {
						t.Errorf("%s: the exported API names %s.%s of %s", set.Position(n.Pos()), x.Name,
							sel.Sel.Name, foreign[x.Name])
					}
				}
				return true
			})
		}
	}
}

// exportedSignatures returns the types in exported signatures and fields.
func exportedSignatures(file *ast.File) []ast.Node {
	var parts []ast.Node
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) {
				parts = append(parts, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok || !s.Name.IsExported() || d.Tok != token.TYPE {
					continue
				}
				if st, isStruct := s.Type.(*ast.StructType); isStruct {
					for _, field := range st.Fields.List {
						if len(field.Names) == 0 || field.Names[0].IsExported() {
							parts = append(parts, field.Type)
						}
					}
					continue
				}
				parts = append(parts, s.Type)
			}
		}
	}
	return parts
}

var snippet = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every Go snippet of the README must be, line for line, part of an example with checked output.
func TestReadmeSnippetsRun(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob(filepath.Join(root, "example*_test.go"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples at the root: %v", err)
	}
	var code strings.Builder
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "// Output:") {
			t.Errorf("%s has no checked output: it could be wrong, and no test would fail", path)
		}
		code.WriteString(folded(string(text)))
	}
	found := snippet.FindAllStringSubmatch(string(readme), -1)
	if len(found) == 0 {
		t.Fatal("the README has no Go snippet")
	}
	for _, s := range found {
		if !strings.Contains(code.String(), folded(s[1])) {
			t.Errorf("this snippet of the README is not code of an example:\n%s", s[1])
		}
	}
}

// Every Go snippet in the README of an adapter must be a part of an example of that adapter.
func TestAdapterSnippetsRun(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "adapters", "*", "README.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no adapter has a README: %v", err)
	}
	for _, page := range pages {
		readme, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		example, err := os.ReadFile(filepath.Join(filepath.Dir(page), "example_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(example), "// Output:") {
			t.Errorf("the example beside %s has no checked output", page)
		}
		found := snippet.FindAllStringSubmatch(string(readme), -1)
		if len(found) == 0 {
			t.Errorf("%s has no Go snippet", page)
		}
		for _, s := range found {
			if !strings.Contains(folded(string(example)), folded(s[1])) {
				t.Errorf("this snippet of %s is not code of its example:\n%s", page, s[1])
			}
		}
	}
}

// folded removes indentation, because a snippet can be inside a function.
func folded(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// The Go snippets in docs/CHOOSING.md must be parts of examples. The code for other systems is
// marked golang or java.
func TestComingFromSnippetsRun(t *testing.T) {
	page := readPage(t, "CHOOSING.md")
	examples, err := filepath.Glob(filepath.Join(root, "examples", "comingfrom", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, at := range examples {
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "// Output:") && filepath.Base(at) != "node_test.go" {
			t.Errorf("%s has no checked output", at)
		}
		code.WriteString(folded(string(text)))
	}
	found := snippet.FindAllStringSubmatch(page, -1)
	if len(found) < 5 {
		t.Fatalf("the page has %d snippets of ours, fewer than libraries that it speaks of", len(found))
	}
	for _, s := range found {
		if !strings.Contains(code.String(), folded(s[1])) {
			t.Errorf("this snippet of docs/CHOOSING.md is not code of an example:\n%s", s[1])
		}
	}
	for _, theirs := range regexp.MustCompile("(?s)```(?:golang|java)\n(.*?)```").FindAllString(page, -1) {
		if strings.Contains(theirs, "mortise.") {
			t.Errorf("this is ours, and marked as theirs:\n%s", theirs)
		}
	}
}

// The Go snippets in docs/PLUGS.md must be parts of examples/queues or examples/plugs, and the page
// must link to each file of examples/queues.
func TestQueueSnippetsRun(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples", "queues", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	page := readPage(t, "PLUGS.md")
	for _, at := range files {
		if link := "](../examples/queues/" + filepath.Base(at) + ")"; !strings.Contains(page, link) {
			t.Errorf("docs/PLUGS.md has no link to %s", at)
		}
	}
	files = append(files, filepath.Join(root, "examples", "plugs", "main.go"))
	var code strings.Builder
	for _, at := range files {
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(folded(string(text)))
	}
	found := snippet.FindAllStringSubmatch(page, -1)
	if len(found) < 2 || len(files) < 6 {
		t.Fatalf("found %d snippets and %d files of code: the rule would pass because it sees nothing", len(found),
			len(files))
	}
	for _, s := range found {
		for part := range strings.SplitSeq(s[1], "\n\n") {
			if !strings.Contains(code.String(), folded(part)) {
				t.Errorf("this snippet of docs/PLUGS.md is not code of examples/queues or examples/plugs:\n%s", part)
			}
		}
	}
}

// The Go blocks of docs/TUTORIAL.md, in their order, must be the program examples/tutorial, and the
// page must show the program's output.
func TestTutorialIsItsProgram(t *testing.T) {
	page := readPage(t, "TUTORIAL.md")
	program, err := os.ReadFile(filepath.Join(root, "examples", "tutorial", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(root, "examples", "tutorial", "tutorial_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks strings.Builder
	for _, s := range snippet.FindAllStringSubmatch(page, -1) {
		blocks.WriteString(s[1])
	}
	_, code, _ := strings.Cut(string(program), "\npackage main\n")
	if got, want := folded(blocks.String()), folded("package main\n"+code); got != want {
		t.Errorf("the Go blocks of docs/TUTORIAL.md are\n%s\nbut examples/tutorial/main.go is\n%s", got, want)
	}
	_, output, found := strings.Cut(string(example), "// Output:\n")
	output = folded(strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "// ", ""))
	if !found || !strings.Contains(folded(page), output) {
		t.Errorf("docs/TUTORIAL.md does not show what the program prints:\n%s", output)
	}
}
