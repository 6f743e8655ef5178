// Command page shrinks a failed run of whole nodes to the parts that its failure needs, and shows
// it as one page. scripts/whole calls it with the variables of package native:
//
//	go run ./internal/lab/whole/page -binary FILE -seed N -dir DIR -transcript FILE \
//		-command TEXT PAGE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/mortise-lock/mortise/internal/lab/whole"
)

func main() {
	s := &whole.Shrinker{Runs: 300, Out: os.Stdout}
	flag.StringVar(&s.Binary, "binary", "", "the tests of package whole, with the changed runtime")
	flag.StringVar(&s.Dir, "dir", os.TempDir(), "a directory for the files of the runs")
	flag.Uint64Var(&s.Seed, "seed", 1, "the seed that fails")
	flag.StringVar(&s.Transcript, "transcript", "", "where the run that failed had its transcript")
	command := flag.String("command", "", "what repeats the run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := show(ctx, s, *command, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func show(ctx context.Context, s *whole.Shrinker, command, name string) error {
	p, err := s.Page(ctx, command)
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := p.Write(file); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	fmt.Printf("the page is now %s\n", name)
	return nil
}
