package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// crosses reports whether the ranges of two points of a file overlap and neither contains the
// other. Such points cannot be in one text.
func (p *point) crosses(q *point) bool {
	if p.file != q.file {
		return false
	}
	a, b := p, q
	if b.begin < a.begin {
		a, b = b, a
	}
	return a.begin < b.begin && b.begin < a.end && a.end < b.end
}

// splice returns the text with the insertions of all points, which do not cross.
func splice(text []byte, points []*point) []byte {
	type insertion struct {
		at, span, n int
		opens       bool
		text        string
	}
	var all []insertion
	for _, p := range points {
		number := strconv.Itoa(p.n)
		put := func(s string) string {
			s = strings.Replace(s, "mutated(N)", "mutated("+number+")", 1)
			return strings.Replace(s, "mutatedPick(N", "mutatedPick("+number, 1)
		}
		all = append(all, insertion{p.begin, p.end - p.begin, p.n, true, put(p.before)},
			insertion{p.end, p.end - p.begin, p.n, false, put(p.after)})
	}
	slices.SortFunc(all, func(a, b insertion) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		if a.opens != b.opens { // what ends here comes before what begins here
			if a.opens {
				return 1
			}
			return -1
		}
		if a.opens {
			return cmp.Or(cmp.Compare(b.span, a.span), cmp.Compare(a.n, b.n))
		}
		return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(b.n, a.n))
	})
	var out []byte
	from := 0
	for _, i := range all {
		out = append(append(out, text[from:i.at]...), i.text...)
		from = i.at
	}
	return append(out, text[from:]...)
}

// The variables have the number of the mutation that is switched on, and the file in which a
// process notes what it reaches. They do not begin with MORTISE_: the program refuses unknown
// variables of that kind, and its tests keep them from the processes that they start.
const (
	switchVariable = "FOREIGN_MUTATION"
	reachVariable  = "FOREIGN_MUTATION_REACH"
)

// asker is the file that is added to each package with mutations. mutated reports whether the
// mutation is switched on. On request it also notes which mutations a process has reached.
const asker = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutatedOn, _ = strconv.Atoi(os.Getenv("` + switchVariable + `"))

var mutatedTo = os.Getenv("` + reachVariable + `")

var mutatedSeen [%d]atomic.Bool

func mutated(n int) bool {
	if mutatedTo != "" && !mutatedSeen[n].Swap(true) {
		if f, err := os.OpenFile(mutatedTo, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
			_, _ = f.WriteString(strconv.Itoa(n) + "\n")
			_ = f.Close()
		}
	}
	return n == mutatedOn
}

func mutatedPick[T any](n int, a, b T) T {
	if mutated(n) {
		return b
	}
	return a
}
`

// overlaid returns the changed and added files of a package with the points in it.
func overlaid(c *checked, dir string, points []*point, most int) map[string][]byte {
	files := map[string][]byte{}
	for name, text := range c.texts {
		var here []*point
		for _, p := range points {
			if p.file == name {
				here = append(here, p)
			}
		}
		if len(here) > 0 {
			files[name] = splice(text, here)
		}
	}
	files[filepath.Join(dir, "foreign_planted.go")] = fmt.Appendf(nil, asker, c.pkg.Name(), most+1)
	return files
}

// write writes the files below to, and returns the name of a file for the flag -overlay.
func write(files map[string][]byte, to string) (string, error) {
	replace := map[string]string{}
	for _, name := range sortedKeys(files) {
		file := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return "", err
		}
		from, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[from] = file
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(to, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o644)
}
