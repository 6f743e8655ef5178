package mutants

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// edits has one file for each package, and caught.txt (see Catchers). An edit begins with "@@" and
// the name of the file that it changes. Each further line begins with a sign, as in a unified diff:
// " " for a line that is kept, "-" for a removed line, "+" for an added line.
//
//go:embed edits caught.txt
var edits embed.FS

// Edit puts one or more bugs into a file. Each bug is a condition that calls bug(name).
type Edit struct {
	File     string // slash-separated path from the root of the module
	Old, New []string
}

// Bugs returns the names of the bugs in an edit. An edit without bugs only adds imports.
func (e Edit) Bugs() (names []string) {
	asks := regexp.MustCompile(`\bbug\("([^"]*)"\)`)
	for _, m := range asks.FindAllStringSubmatch(strings.Join(e.New, "\n"), -1) {
		names = append(names, m[1])
	}
	return names
}

// Edits returns all edits, in the order of their files.
func Edits() (all []Edit, err error) {
	lists, err := fs.Glob(edits, "edits/*.diff")
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		text, err := edits.ReadFile(list)
		if err != nil {
			return nil, err
		}
		some, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// Parse reads edits in the format of the files in the directory edits.
func Parse(text string) (all []Edit, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if file, begins := strings.CutPrefix(line, "@@ "); begins {
			all = append(all, Edit{File: file})
			continue
		}
		if len(all) == 0 || line == "" || !strings.Contains(" +-", line[:1]) {
			return nil, fmt.Errorf("line %d begins with none of @@, space, + and -", number)
		}
		e := &all[len(all)-1]
		if line[0] != '+' {
			e.Old = append(e.Old, line[1:])
		}
		if line[0] != '-' {
			e.New = append(e.New, line[1:])
		}
	}
	return all, nil
}

// Planted returns the files below root that have bugs, with all bugs in them. The error names each
// edit whose old lines do not occur in its file exactly once.
func Planted(root string) (map[string]string, error) {
	all, err := Edits()
	if err != nil {
		return nil, err
	}
	planted := map[string]string{}
	return planted, Apply(root, planted, all)
}

// Apply makes the edits in files, a map of slash-separated paths to texts. A file that is not in
// the map is read below root, and added. The error names each edit whose old lines do not occur in
// its file exactly once.
func Apply(root string, files map[string]string, all []Edit) error {
	var wrong []error
	for _, e := range all {
		text, read := files[e.File]
		if !read {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return err
			}
			text = string(b)
		}
		files[e.File] = text
		lines := strings.Split(text, "\n")
		at := places(lines, e.Old)
		if len(at) != 1 {
			wrong = append(wrong, fmt.Errorf("an edit for %q stands %d times in %s, and not once. "+
				"Write it anew beside the other edits:\n%s",
				e.Bugs(), len(at), e.File, strings.Join(e.Old, "\n")))
			continue
		}
		files[e.File] = strings.Join(slices.Replace(lines, at[0], at[0]+len(e.Old), e.New...), "\n")
	}
	return errors.Join(wrong...)
}

func places(lines, some []string) (at []int) {
	for i := 0; len(some) > 0 && i+len(some) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(some)], some) {
			at = append(at, i)
		}
	}
	return at
}

// asker is the file that Overlay adds to each package with bugs.
const asker = `package %s

import "os"

// planted is the one bug that is switched on, read once.
var planted = os.Getenv("PLANTED_BUG")

// bug reports whether a planted bug is switched on.
func bug(name string) bool { return name == planted }
`

// Sources returns the files of the overlay with all planted bugs: their texts by their paths below
// root, with slashes. In the built program, PLANTED_BUG selects the bug.
func Sources(root string) (map[string]string, error) {
	planted, err := Planted(root)
	if err != nil {
		return nil, err
	}
	return planted, Beside(planted, "bug_planted.go", asker)
}

// Beside adds a file to each package of the given files. The verb %s in its text is the name of the
// package.
func Beside(files map[string]string, name, text string) error {
	for _, file := range slices.Collect(maps.Keys(files)) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, files[file], parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		files[path.Join(path.Dir(file), name)] = fmt.Sprintf(text, parsed.Name.Name)
	}
	return nil
}

// Overlay writes all files with bugs below dir and returns the name of a file for the flag
// -overlay of go build and go test.
func Overlay(root, dir string) (string, error) {
	files, err := Sources(root)
	if err != nil {
		return "", err
	}
	return Write(root, dir, files)
}

// Write writes files below dir, and returns the name of a file for the flag -overlay of go build
// and go test. A path that is not absolute is below root.
func Write(root, dir string, files map[string]string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		from := filepath.FromSlash(file)
		to := filepath.Join(dir, from)
		if !filepath.IsAbs(from) {
			from = filepath.Join(root, from)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[from] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o644)
}
