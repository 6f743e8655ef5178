package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mortise-lock/mortise/internal/mutants"
	"github.com/mortise-lock/mortise/internal/mutants/binaries"
)

// limit is how long one layer may run against one bug. A slower layer counts as neither caught nor
// missed: the machine may be busy.
const limit = 4 * time.Minute

type bench struct {
	*binaries.Set
	layers []mutants.Layer
}

func build(ctx context.Context, layers []mutants.Layer, workers int) (*bench, error) {
	set, err := binaries.New()
	if err != nil {
		return nil, err
	}
	b := &bench{Set: set}
	var packages []string
	for _, l := range layers {
		if _, err := os.Stat(l.Package); err != nil {
			fmt.Printf("left out: layer %s, since there is no %s\n", l.Name, l.Package)
			continue
		}
		b.layers = append(b.layers, l)
		packages = append(packages, l.Package)
	}
	overlay, err := mutants.Overlay(".", filepath.Join(set.Dir(), "source"))
	if err != nil {
		b.Close()
		return nil, err
	}
	// Build all packages: an edit must compile even if no layer tests its package.
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./...").CombinedOutput(); err != nil {
		b.Close()
		return nil, fmt.Errorf("building the sources with all planted bugs: %w\n%s", err, out)
	}
	if err := b.Build(ctx, overlay, packages, workers); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

type sighting struct {
	binaries.Outcome
	layer string
}

// look runs the tests of one layer with one bug switched on. The zero bug means none.
func (b *bench) look(ctx context.Context, l mutants.Layer, bug mutants.Bug, run string) sighting {
	args := []string{"-test.failfast"}
	if run != "" {
		args = append(args, "-test.run", run)
	}
	if l.Skip != "" {
		args = append(args, "-test.skip", l.Skip)
	}
	return sighting{b.Run(ctx, l.Package, args, append(l.Environ(bug), "MORTISE_BUG="+bug.Name), limit), l.Name}
}

// hunt runs the layers that can catch a bug, until one of them fails. If every is set, it runs
// all of them.
func (b *bench) hunt(ctx context.Context, bug mutants.Bug, every bool) []sighting {
	var all []sighting
	for _, l := range b.layers {
		if !l.Sees(bug) || ctx.Err() != nil {
			continue
		}
		s := b.look(ctx, l, bug, l.Tests(bug))
		all = append(all, s)
		if s.Failed && !every {
			break
		}
	}
	return all
}

// healthy reports an error if a layer fails with no bug switched on.
func (b *bench) healthy(ctx context.Context, bugs []mutants.Bug, workers int) error {
	var failed []error
	seen := make([]sighting, len(b.layers))
	binaries.Each(len(b.layers), workers, func(i int) {
		l := b.layers[i]
		seen[i] = b.look(ctx, l, mutants.Bug{}, l.Tests(bugs...))
	}, func(i int) {
		s := seen[i]
		fmt.Printf("%-30s %-9s %-10s %-44s %6s %7s\n", "no bug", "", s.layer, s.Test, s.Seed,
			s.Took.Round(10*time.Millisecond))
		if s.Failed || s.Slow {
			failed = append(failed, fmt.Errorf("layer %s fails or hangs with no bug planted:\n%s", s.layer, s.Output))
		}
	})
	fmt.Println()
	return errors.Join(failed...)
}
