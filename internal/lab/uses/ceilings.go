package uses

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Ceiling is how much the files of one directory may use each other.
type Ceiling struct {
	Pairs   int // pairs of files that use each other
	Against int // uses that break the best layering
	Knot    int // files of the largest knot
}

// Figures returns the present values of what a Ceiling limits.
func (u Files) Figures() Ceiling { return Ceiling{len(u.Pairs()), u.Against(), len(u.Knot())} }

// none returns the ceiling of a directory that the list does not name.
func none() Ceiling { return Ceiling{Knot: 1} }

// Ceilings contains the ceiling of each directory with a pair or a knot.
type Ceilings map[string]Ceiling

// ReadCeilings reads a list. A line has a directory, which is "." for the root, and its three
// figures.
func ReadCeilings(path string) (Ceilings, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := Ceilings{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		dir, c := "", Ceiling{}
		if _, err := fmt.Sscan(line, &dir, &c.Pairs, &c.Against, &c.Knot); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		if _, twice := all[key(dir)]; twice {
			return nil, fmt.Errorf("%s: %q has two lines", path, dir)
		}
		all[key(dir)] = c
	}
	return all, nil
}

func key(dir string) string {
	if dir == "." {
		return ""
	}
	return dir
}

const head = `# How much the files of each directory may use each other: pairs of files that use each other, uses
# that break the layering, files of the largest knot. A figure is only lowered:
#
#	scripts/size -lower
`

// Write writes the list.
func (c Ceilings) Write(path string) error {
	text := head
	for _, dir := range slices.Sorted(maps.Keys(c)) {
		name := dir
		if name == "" {
			name = "."
		}
		text += fmt.Sprintf("%s %d %d %d\n", name, c[dir].Pairs, c[dir].Against, c[dir].Knot)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// Lowered returns the ceilings lowered to the present figures. None is raised, and none is added.
func (c Ceilings) Lowered(now map[string]Files) Ceilings {
	lowered := Ceilings{}
	for dir, most := range c {
		u, there := now[dir]
		if !there {
			continue
		}
		is := u.Figures()
		most = Ceiling{min(most.Pairs, is.Pairs), min(most.Against, is.Against), min(most.Knot, is.Knot)}
		if most != none() {
			lowered[dir] = most
		}
	}
	return lowered
}

// Above returns a sentence for each directory whose files use each other more than its ceiling
// allows.
func (c Ceilings) Above(now map[string]Files) (all []string) {
	for _, dir := range slices.Sorted(maps.Keys(now)) {
		most, named := c[dir]
		if !named {
			most = none()
		}
		u := now[dir]
		is := u.Figures()
		if is.Pairs > most.Pairs {
			all = append(all, fmt.Sprintf("/%s: %d pairs of files use each other, at most %d may: %s", dir, is.Pairs, most.Pairs,
				u.Pairs()))
		}
		if is.Knot > most.Knot {
			all = append(all, fmt.Sprintf("/%s: %d files lead to each other, at most %d may: %s", dir, is.Knot, most.Knot,
				u.Knot()))
		}
		if is.Against > most.Against {
			all = append(all, fmt.Sprintf("/%s: %d uses break the layering, at most %d may: let the lower file get a value",
				dir, is.Against, most.Against))
		}
	}
	return all
}

// Below returns a sentence for each ceiling that is higher than need be.
func (c Ceilings) Below(now map[string]Files) (all []string) {
	lowered := c.Lowered(now)
	for _, dir := range slices.Sorted(maps.Keys(c)) {
		to, named := lowered[dir]
		if !named {
			to = none()
		}
		if to != c[dir] {
			all = append(all, fmt.Sprintf("/%s: the ceiling is %v, and %v is enough: lower it with scripts/size -lower",
				dir, c[dir], to))
		}
	}
	return all
}
