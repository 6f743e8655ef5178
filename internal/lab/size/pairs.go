package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/lab/uses"
)

// printUses prints the figures of each directory that has any, and those of all together.
func printUses(out io.Writer, root string) error {
	found, err := uses.Of(root, "./...")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%-28s %6s %6s %6s %8s %6s\n", "directory", "files", "uses", "pairs", "against", "knot")
	row := func(dir string, files, of int, is uses.Ceiling) {
		fmt.Fprintf(out, "%-28s %6d %6d %6d %8d %6d\n", dir, files, of, is.Pairs, is.Against, is.Knot)
	}
	files, all, sum := 0, 0, uses.Ceiling{}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		u := found[dir]
		is := u.Figures()
		if is.Against > 0 {
			row(cmp.Or(dir, "."), len(u), u.Uses(), is)
		}
		files, all = files+len(u), all+u.Uses()
		sum = uses.Ceiling{Pairs: sum.Pairs + is.Pairs, Against: sum.Against + is.Against, Knot: max(sum.Knot, is.Knot)}
	}
	row("all", files, all, sum)
	return nil
}

// printPairs prints what the files of one directory use of each other.
func printPairs(out io.Writer, root, dir string) error {
	found, err := uses.Of(root, "./"+strings.TrimPrefix(dir, "./"))
	if err != nil {
		return err
	}
	for _, u := range found {
		for _, p := range u.Pairs() {
			a, b := p[0], p[1]
			fmt.Fprintf(out, "%s <- %s: %s\n", a, b, strings.Join(u[b][a], " "))
			fmt.Fprintf(out, "%s <- %s: %s\n\n", b, a, strings.Join(u[a][b], " "))
		}
		knot := u.Knot()
		fmt.Fprintf(out, "%d files, %d uses, %d pairs, %d against the layering\n%d in a knot: %s\n", len(u), u.Uses(),
			len(u.Pairs()), u.Against(), len(knot), strings.Join(knot, " "))
	}
	return nil
}
