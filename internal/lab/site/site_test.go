package main

import (
	"fmt"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is the root of the repository.
const tree = "../../.."

// made makes the site of the present tree, and returns its directory.
func made(t *testing.T) string {
	t.Helper()
	versions, err := versionsOf(tree, "", true)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(dir, versions); err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	reference = regexp.MustCompile(`\s(?:href|src)="([^"]*)"`)
	anchorID  = regexp.MustCompile(`\sid="([^"]*)"`)
)

// linkFaults returns the links below a directory that lead nowhere: to a file or an anchor that is
// not there, or to a file of the repository that the tree does not have. It also returns the number
// of links.
func linkFaults(dir string, files fs.FS) (faults []string, links int) {
	anchors := map[string][]string{}
	texts := map[string]string{}
	_ = filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(at, ".html") {
			text, _ := os.ReadFile(at)
			texts[at] = string(text)
			for _, match := range anchorID.FindAllStringSubmatch(string(text), -1) {
				anchors[at] = append(anchors[at], html.UnescapeString(match[1]))
			}
		}
		return err
	})
	for at, text := range texts {
		for _, match := range reference.FindAllStringSubmatch(text, -1) {
			links++
			to := html.UnescapeString(match[1])
			if inside, is := strings.CutPrefix(to, repository+"/"); is {
				inside, _, _ = strings.Cut(inside, "#")
				parts := strings.SplitN(inside, "/", 3)
				if len(parts) == 3 && (parts[0] == "blob" || parts[0] == "tree") {
					if _, err := fs.Stat(files, parts[2]); err != nil {
						faults = append(faults, fmt.Sprintf("%s links to %s of the repository: %v", at, parts[2], err))
					}
				}
				continue
			}
			if outside.MatchString(to) {
				continue
			}
			file, fragment, _ := strings.Cut(to, "#")
			target := at
			if file != "" {
				target = filepath.Join(filepath.Dir(at), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				faults = append(faults, fmt.Sprintf("%s links to %s, which is not there", at, to))
			} else if fragment != "" && !slices.Contains(anchors[target], fragment) {
				faults = append(faults, fmt.Sprintf("%s links to %s, and there is no such anchor", at, to))
			}
		}
	}
	return faults, links
}

func TestEachLinkOfTheSiteResolves(t *testing.T) {
	dir := made(t)
	faults, links := linkFaults(dir, os.DirFS(tree))
	for _, fault := range faults {
		t.Error(fault)
	}
	if links < 500 {
		t.Errorf("the site has %d links: the rule would pass because it sees nothing", links)
	}
	for what, link := range map[string]string{
		"a page that is not there":           `<a href="NOTHING.html">`,
		"an anchor that is not there":        `<a href="GUARANTEES.html#nothing">`,
		"a picture that is not there":        `<img src="pictures/nothing.png">`,
		"a file that the tree does not have": `<a href="` + repository + `/blob/main/nothing.go">`,
	} {
		at := filepath.Join(dir, "next", "wrong.html")
		if err := os.WriteFile(at, []byte(link), 0o644); err != nil {
			t.Fatal(err)
		}
		if faults, _ := linkFaults(dir, os.DirFS(tree)); len(faults) != 1 {
			t.Errorf("%s: %q", what, faults)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
}

// Each page in docs is a page of the site, and each page leads to all others.
func TestEachPageIsThere(t *testing.T) {
	dir := filepath.Join(made(t), "next")
	sources, err := filepath.Glob(filepath.Join(tree, "docs", "*.md"))
	if err != nil || len(sources) < 5 {
		t.Fatal(sources, err)
	}
	names := []string{"index.html"}
	for _, at := range sources {
		names = append(names, strings.TrimSuffix(filepath.Base(at), ".md")+".html")
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, other := range names {
			if !strings.Contains(string(text), `<a href="`+other+`"`) {
				t.Errorf("%s does not lead to %s", name, other)
			}
		}
	}
}

func small(more fstest.MapFS) fs.FS {
	files := fstest.MapFS{
		"README.md":       {Data: []byte("# Small\n\nSee [A](docs/A.md#a-part), [code](lock.go).\n\n![x](docs/x.svg)\n")},
		"docs/A.md":       {Data: []byte("# A\n\n## A part\n\n[Back](../README.md), [dir](../docs), [self](#a-part).\n")},
		"docs/x.svg":      {Data: []byte("<svg/>")},
		"lock.go":         {Data: []byte("package mortise\n")},
		"docs/pictures/x": {},
	}
	for at, file := range more {
		files[at] = file
	}
	return files
}

// A link that leads nowhere names its page, and ends the build.
func TestAWrongLinkIsNamed(t *testing.T) {
	for link, wanted := range map[string]string{
		"[x](gone.go)":       "docs/B.md links to gone.go, which is not there",
		"[x](../../gone.md)": "docs/B.md links to ../../gone.md, which is not there",
		"![x](gone.png)":     "docs/B.md links to gone.png, which is not there",
	} {
		files := small(fstest.MapFS{"docs/B.md": {Data: []byte("# B\n\n" + link + "\n")}})
		err := write(t.TempDir(), []version{{name: "next", files: files, revision: "main"}})
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v, want %q", link, err, wanted)
		}
	}
	other := fstest.MapFS{"docs/pictures/x.svg": {Data: []byte("<svg/>")},
		"docs/B.md": {Data: []byte("![x](pictures/x.svg)\n")}}
	err := write(t.TempDir(), []version{{name: "next", files: small(other), revision: "main"}})
	if err == nil || !strings.Contains(err.Error(), "have one name") {
		t.Errorf("two pictures of one name: %v", err)
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	taken := map[string]int{}
	for _, c := range [][2]string{
		{"Memory or `Dir`", "memory-or-dir"}, {"What is promised?", "what-is-promised"},
		{"5. First, second", "5-first-second"},
		{"A_b-c", "a_b-c"}, {"Größe", "größe"}, {"What is promised?", "what-is-promised-1"},
	} {
		if got := unique(anchorOf(strings.ReplaceAll(c[0], "`", "")), taken); got != c[1] {
			t.Errorf("%q has the anchor %q, want %q", c[0], got, c[1])
		}
	}
}

// git runs git in a directory.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	always := []string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}
	run := exec.Command("git", append(always, args...)...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// Each version has its own pages, and links to its own files in the repository.
func TestVersions(t *testing.T) {
	repo, out := t.TempDir(), t.TempDir()
	put := func(at, text string) {
		t.Helper()
		at = filepath.Join(repo, at)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, repo, "init", "-q")
	put("README.md", "# Old\n\n[code](lock.go)\n")
	put("docs/GONE.md", "# Gone\n")
	put("lock.go", "package mortise\n")
	git(t, repo, "add", ".")
	git(t, repo, "commit", "-q", "-m", "one")
	git(t, repo, "tag", "v0.1.0")
	put("README.md", "# New\n\n[code](locks.go)\n")
	put("locks.go", "package mortise\n")
	git(t, repo, "rm", "-q", "docs/GONE.md")

	versions, err := versionsOf(repo, "v0.1.0", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(out, versions); err != nil {
		t.Fatal(err)
	}
	for at, wanted := range map[string]string{
		"next/index.html":   repository + "/blob/main/locks.go",
		"v0.1.0/index.html": repository + "/blob/v0.1.0/lock.go",
		"v0.1.0/GONE.html":  "Gone",
		marker:              `{"name":"v0.1.0","pages":["index.html","GONE.html"]}`,
		"index.html":        "next/index.html",
	} {
		if text, err := os.ReadFile(filepath.Join(out, at)); err != nil || !strings.Contains(string(text), wanted) {
			t.Errorf("%s: %v, without %s", at, err, wanted)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "next", "GONE.html")); err == nil {
		t.Error("a page of another version is in next")
	}
	// A site is replaced; other files are not.
	if err := write(out, versions[:1]); err != nil {
		t.Error(err)
	}
	if err := write(repo, versions); err == nil || !strings.Contains(err.Error(), "name another directory") {
		t.Errorf("a directory with other files: %v", err)
	}
	for revisions, wanted := range map[string]string{
		"v9": `"v9" is neither a tag nor a commit`, "--help": `"--help" is neither`, "v0.1.0,v0.1.0": "name each once",
	} {
		if _, err := versionsOf(repo, revisions, true); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("-versions %s: %v, want %q", revisions, err, wanted)
		}
	}
	if named, err := versionsOf(repo, "HEAD~0, v0.1.0", false); err != nil || named[0].name != "HEAD-0" ||
		named[1].name != "v0.1.0" {
		t.Errorf("%+v, %v", named, err)
	}
	if _, err := versionsOf(repo, "", false); err == nil {
		t.Error("a site without versions")
	}
}

// The page of the simulation is copied if it was built.
func TestThePageOfTheSimulation(t *testing.T) {
	more := fstest.MapFS{"docs/try/index.html": {Data: []byte("try")}}
	more["docs/B.md"] = &fstest.MapFile{Data: []byte("[x](try/index.html)\n")}
	for _, built := range []bool{false, true} {
		if built {
			more["docs/try/mortise.wasm"] = &fstest.MapFile{Data: []byte("program")}
		}
		dir := t.TempDir()
		if err := write(dir, []version{{name: "next", files: small(more), revision: "main"}}); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(dir, "next", "try", "mortise.wasm"))
		text, _ := os.ReadFile(filepath.Join(dir, "next", "B.html"))
		if inside := strings.Contains(string(text), `<a href="try/index.html">x`); (err == nil) != built || inside != built {
			t.Errorf("built %v: %v, linked inside %v", built, err, inside)
		}
	}
}

func TestSequencesAreDrawn(t *testing.T) {
	code := "sequenceDiagram\n    participant A as caller\n    participant B\n    A->>B: a < b\n    B-->>A: yes\n" +
		"    Note over A,B: one<br>two\n    loop each turn\n    B->>B: Step\n    end\n"
	picture, drawn := drawSequence(code)
	if !drawn {
		t.Fatal("it is not drawn")
	}
	for _, wanted := range []string{
		"<title>caller to B: a &lt; b. B to caller: yes. one two. repeated: each turn. B to B: Step.</title>",
		`class="arrow answer"`, `class="note"`, ">one</text>", ">two</text>",
	} {
		if !strings.Contains(picture, wanted) {
			t.Errorf("without %s:\n%s", wanted, picture)
		}
	}
	for what, other := range map[string]string{
		"a flowchart": "flowchart TD\n a --> b\n", "an unknown line": code + "    alt x\n",
		"an unknown participant": code + "    C->>A: x\n", "nothing": "sequenceDiagram\n",
	} {
		if _, drawn := drawSequence(other); drawn {
			t.Errorf("%s is drawn", what)
		}
	}
}

func TestGraphsAreListed(t *testing.T) {
	list, listed := listGraph("flowchart TD\n    a[\"one<br>two\"] --> b[\"three\"]\n    b -->|why| c\n    b -.-> a\n" +
		"    c[\"<four>\"]\n")
	wanted := "<ul class=\"graph\">\n<li><strong>one: two</strong> → three</li>\n" +
		"<li><strong>three</strong> → &lt;four&gt; (why); one</li>\n</ul>\n"
	if !listed || list != wanted {
		t.Errorf("%v, got\n%s\nwant\n%s", listed, list, wanted)
	}
	list, listed = listGraph("stateDiagram-v2\n    [*] --> seeking\n    seeking --> open: asks, a voter\n")
	if !listed || !strings.Contains(list, "<li><strong>seeking</strong> → open (asks, a voter)</li>") {
		t.Errorf("%v, %s", listed, list)
	}
	for what, other := range map[string]string{
		"a sequence": "sequenceDiagram\n    A->>B: x\n", "an unknown line": "flowchart TD\n    a --> b\n    subgraph x\n",
	} {
		if _, listed := listGraph(other); listed {
			t.Errorf("%s is listed", what)
		}
	}
}

// All diagrams of the documents are drawn or listed.
func TestTheDiagramsOfTheDocumentsAreShown(t *testing.T) {
	pages, err := pagesOf(os.DirFS(tree))
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?s)```mermaid\n(.*?)```")
	count := 0
	for _, p := range pages {
		for _, match := range fence.FindAllSubmatch(p.text, -1) {
			count++
			_, drawn := drawSequence(string(match[1]))
			_, listed := listGraph(string(match[1]))
			if !drawn && !listed {
				t.Errorf("%s: this diagram is shown as text:\n%s", p.source, match[1])
			}
		}
	}
	if count < 4 {
		t.Errorf("only %d diagrams are found", count)
	}
}

// The search finds each heading, and each paragraph that begins in bold, with the text below it.
func TestSections(t *testing.T) {
	files := small(fstest.MapFS{"docs/B.md": {Data: []byte("# B\n\nFirst `code`.\n\n**Bold (one).** Its text.\n\n" +
		"- **Item.** No section.\n\n## Two *words*\n\n| a | b |\n|---|---|\n| c | d |\n\n" +
		"    indented\n\n#### Deep\n\nEnd.\n")}})
	pages, err := pagesOf(files)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(pages, func(p page) bool { return p.source == "docs/B.md" })
	r, err := render(pages[at], &links{version: version{files: files}, pages: pages, copied: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	want := []section{
		{1, "b", "B", "B First code."},
		{4, "bold-one", "Bold (one)", "Bold (one). Its text. Item. No section."},
		{2, "two-words", "Two words", "Two words a b c d indented Deep End."},
	}
	if !slices.Equal(r.sections, want) || !strings.Contains(string(r.body), `<p id="bold-one">`) {
		t.Errorf("got %+v\nwant %+v\nin %s", r.sections, want, r.body)
	}
}

// Paths in code may be broken, at their slashes and points.
func TestCodeCanBeBroken(t *testing.T) {
	files := small(fstest.MapFS{"docs/B.md": {Data: []byte("`a/b.TestC < 1.5`\n")}})
	dir := t.TempDir()
	if err := write(dir, []version{{name: "next", files: files, revision: "main"}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "next", "B.html"))
	if wanted := "<code>a/<wbr>b.<wbr>TestC &lt; 1.5</code>"; err != nil || !strings.Contains(string(text), wanted) {
		t.Errorf("%v, without %s:\n%s", err, wanted, text)
	}
}

func TestPagesAreInTheOrderOfTheReadme(t *testing.T) {
	files := fstest.MapFS{
		"README.md": {Data: []byte("# R\n[z](docs/Z.md), [b](docs/B.md#x), [z](docs/Z.md)")},
		"docs/A.md": {}, "docs/B.md": {}, "docs/Z.md": {},
	}
	pages, err := pagesOf(files)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pages {
		got = append(got, path.Base(p.source))
	}
	if want := []string{"README.md", "Z.md", "B.md", "A.md"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
