// Command overlay writes the sources with all planted bugs and prints the name of a file for the
// flag -overlay. It must be run in the root of the module:
//
//	PLANTED_BUG=stale-ack go test -overlay "$(go run ./internal/lab/mutants/overlay)" \
//		-run Simulation ./session
//
// It writes to the directory in its argument, by default to a new temporary directory.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
)

func main() {
	flag.Parse()
	if err := run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "mutants"); err != nil {
			return err
		}
	}
	overlay, err := mutants.Overlay(".", dir)
	if err != nil {
		return err
	}
	_, err = fmt.Println(overlay)
	return err
}
