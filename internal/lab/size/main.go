// Command size prints how large the tree is, and how its files use each other.
//
//	go run ./internal/lab/size [-since REVISION]
//	go run ./internal/lab/size -pairs DIRECTORY
//	go run ./internal/lab/size -lower
//
// Without a flag it prints the lines of code of each room, beside those of an earlier revision, and
// the files that are gone since. A line counts if it is not blank and not only a comment. Generated
// files do not count. A file that has moved counts in both columns where it is now, if git finds it
// again. Then it prints, for each directory, the pairs of files that use each other, the uses
// that break the best layering, and the files of the largest knot (see internal/lab/uses).
//
// With -pairs it prints the pairs and the knot of one directory, with the names by which the files
// use each other. With -lower it lowers the ceilings of ceilings.txt to the present figures. A test
// of internal/lab/policy fails if a figure is above its ceiling or below.
//
// The programs git and go must be installed, and the working directory is that of the repository.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/mortise-lock/mortise/internal/lab/uses"
)

const ceilings = "internal/lab/size/ceilings.txt"

func main() {
	since := flag.String("since", "190ab2c2", "the earlier revision")
	pairs := flag.String("pairs", "", "print the pairs and the knot of this directory")
	lower := flag.Bool("lower", false, "lower the ceilings to the present figures")
	flag.Parse()
	var err error
	switch {
	case *pairs != "":
		err = printPairs(os.Stdout, ".", *pairs)
	case *lower:
		err = lowerAll(".", ceilings)
	default:
		err = errors.Join(printRooms(os.Stdout, ".", *since), printUses(os.Stdout, "."))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func lowerAll(root, list string) error {
	all, err := uses.ReadCeilings(list)
	if err != nil {
		return err
	}
	found, err := uses.Of(root, "./...")
	if err != nil {
		return err
	}
	return all.Lowered(found).Write(list)
}
