package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

// limit is how long one layer may run against one bug. A slower layer counts as neither caught nor
// missed: the machine may be busy.
const limit = 4 * time.Minute

type bench struct {
	*binaries.Set
	layers   []mutants.Layer
	known    map[string]mutants.Catcher
	overlay  string
	packages map[string]func() error // builds the tests of a package, once
}

// prepare writes the sources with all bugs, and builds the test binaries of the given packages. A
// layer of another package is built when a hunt comes to it.
func prepare(ctx context.Context, layers []mutants.Layer, first []string, workers int) (*bench, error) {
	set, err := binaries.New()
	if err != nil {
		return nil, err
	}
	b := &bench{Set: set, known: mutants.Catchers(), packages: map[string]func() error{}}
	if b.overlay, err = mutants.Overlay(".", filepath.Join(set.Dir(), "source")); err != nil {
		b.Close()
		return nil, err
	}
	for _, l := range layers {
		if _, err := os.Stat(l.Package); err != nil {
			fmt.Printf("left out: layer %s, since there is no %s\n", l.Name, l.Package)
			continue
		}
		b.layers = append(b.layers, l)
		if b.packages[l.Package] == nil {
			b.packages[l.Package] = sync.OnceValue(func() error {
				return b.Build(ctx, b.overlay, []string{l.Package}, 1)
			})
		}
	}
	first = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(first))),
		func(pkg string) bool { return b.packages[pkg] == nil })
	failed := make([]error, len(first))
	binaries.Each(len(first), workers, func(i int) { failed[i] = b.packages[first[i]]() }, func(int) {})
	if err := errors.Join(failed...); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// compile builds all packages, because an edit must compile even if no layer tests its package.
func (b *bench) compile(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-overlay", b.overlay, "./...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the sources with all planted bugs: %w\n%s", err, out)
	}
	return nil
}

type sighting struct {
	binaries.Outcome
	layer string
}

// look runs tests of one layer with one bug switched on. The zero bug means none.
func (b *bench) look(ctx context.Context, l mutants.Layer, bug mutants.Bug, args, env []string) sighting {
	if err := b.packages[l.Package](); err != nil {
		return sighting{binaries.Outcome{Slow: true, Output: []byte(err.Error())}, l.Name}
	}
	args = append([]string{"-test.failfast"}, args...)
	env = append(append(l.Environ(bug), env...), "PLANTED_BUG="+bug.Name)
	return sighting{b.Run(ctx, l.Package, args, env, limit), l.Name}
}

// tests returns the arguments that select all tests of a layer against the given bugs.
func tests(l mutants.Layer, bugs ...mutants.Bug) (args []string) {
	if run := l.Tests(bugs...); run != "" {
		args = append(args, "-test.run", run)
	}
	if l.Skip != "" {
		args = append(args, "-test.skip", l.Skip)
	}
	return args
}

// hunt runs the recorded catcher of a bug. If it does not notice the bug, hunt runs the layers that
// can catch the bug, until one of them fails. If every is set, it only runs all layers.
func (b *bench) hunt(ctx context.Context, bug mutants.Bug, every bool) []sighting {
	if known, is := b.known[bug.Name]; is && !every {
		for _, l := range b.layers {
			if l.Name == known.Layer && l.Sees(bug) {
				args, env := l.Alone(known)
				if s := b.look(ctx, l, bug, args, env); s.Failed && s.Test == known.Test {
					s.Seed = known.Seed
					return []sighting{s}
				}
			}
		}
	}
	var all []sighting
	for _, l := range b.layers {
		if !l.Sees(bug) || ctx.Err() != nil {
			continue
		}
		s := b.look(ctx, l, bug, tests(l, bug), nil)
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
		seen[i] = b.look(ctx, l, mutants.Bug{}, tests(l, bugs...), nil)
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
