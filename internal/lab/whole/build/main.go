// Command build builds the tests of package whole with the changed runtime, and prints the path of
// the binary. It must be run in the root of the module:
//
//	go run ./internal/lab/whole/build [-planted] DIR
//
// It writes to the directory DIR. With -planted, the product has all planted bugs (PLANTED_BUG).
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mortise-lock/mortise/internal/lab/whole/native"
)

func main() {
	planted := flag.Bool("planted", false, "with all planted bugs")
	flag.Parse()
	if err := run(flag.Arg(0), *planted); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string, planted bool) error {
	goroot, err := native.Root()
	if err != nil {
		return err
	}
	overlay, err := native.Overlay(".", goroot, filepath.Join(dir, "source"), planted)
	if err != nil {
		return err
	}
	binary := filepath.Join(dir, "whole.test")
	building := exec.Command("go", native.BuildArgs(overlay, binary)...)
	building.Env = append(os.Environ(), native.BuildEnviron()...)
	building.Stderr = os.Stderr
	if err := building.Run(); err != nil {
		return fmt.Errorf("building the tests of whole nodes: %w", err)
	}
	_, err = fmt.Println(binary)
	return err
}
