// Command replay repeats a run that was shared from the page docs/try, and prints what has
// happened in it. Its last line is that of the page.
package main

import (
	"fmt"
	"os"

	"github.com/mortise-lock/mortise/internal/lab/try"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: replay 'seed=7&do=4200k0,9000s0&end=20000'")
		os.Exit(2)
	}
	a, err := try.Parse(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(2)
	}
	lines, last := try.Replay(a)
	for _, l := range lines {
		fmt.Printf("%8.3f s  %s\n", l.At, l.Text)
	}
	fmt.Println(last)
}
