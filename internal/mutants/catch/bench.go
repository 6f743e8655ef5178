package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/mutants"
)

// limit is how long one layer may run against one bug. A slower layer counts as neither caught nor
// missed: the machine may be busy.
const limit = 4 * time.Minute

type bench struct {
	dir    string
	layers []mutants.Layer
}

func (b *bench) binary(pkg string) string {
	return filepath.Join(b.dir, strings.NewReplacer("/", "_", ".", "root").Replace(pkg)+".test")
}

func build(ctx context.Context, layers []mutants.Layer, workers int) (*bench, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir}
	var packages []string
	for _, l := range layers {
		if _, err := os.Stat(l.Package); err != nil {
			fmt.Printf("left out: layer %s, since there is no %s\n", l.Name, l.Package)
			continue
		}
		b.layers = append(b.layers, l)
		packages = append(packages, l.Package)
	}
	overlay, err := mutants.Overlay(".", filepath.Join(dir, "source"))
	if err != nil {
		b.close()
		return nil, err
	}
	// Build all packages: an edit must compile even if no layer tests its package.
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./...").CombinedOutput(); err != nil {
		b.close()
		return nil, fmt.Errorf("building the sources with all planted bugs: %w\n%s", err, out)
	}
	var mu sync.Mutex
	var failed error
	each(len(packages), workers, func(i int) {
		for _, earlier := range packages[:i] {
			if earlier == packages[i] {
				return
			}
		}
		building := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", b.binary(packages[i]),
			"./"+packages[i])
		if out, err := building.CombinedOutput(); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, fmt.Errorf("building the tests of %s: %w\n%s", packages[i], err, out))
		}
	}, func(int) {})
	if failed != nil {
		b.close()
		return nil, failed
	}
	return b, nil
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

type sighting struct {
	layer  string
	failed bool
	slow   bool // it did not finish within the limit
	test   string
	seed   string // the seed with which it failed, if it has seeds
	took   time.Duration
	output []byte
}

// look runs the tests of one layer with one bug switched on. The zero bug means none.
func (b *bench) look(ctx context.Context, l mutants.Layer, bug mutants.Bug, run string) sighting {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := []string{"-test.failfast", "-test.timeout", (2 * limit).String()}
	if run != "" {
		args = append(args, "-test.run", run)
	}
	if l.Skip != "" {
		args = append(args, "-test.skip", l.Skip)
	}
	c := exec.CommandContext(ctx, b.binary(l.Package), args...)
	c.Dir = l.Package
	c.Env = append(append(os.Environ(), l.Environ(bug)...), "MORTISE_BUG="+bug.Name)
	begun := time.Now()
	out, err := c.CombinedOutput()
	s := sighting{layer: l.Name, failed: err != nil && ctx.Err() == nil, slow: ctx.Err() != nil,
		took: time.Since(begun), output: out}
	if s.failed {
		s.read()
	}
	return s
}

func (s *sighting) read() {
	find := func(form string) string {
		for _, m := range regexp.MustCompile(form).FindAllSubmatch(s.output, 1) {
			for _, part := range m[1:] {
				if len(part) > 0 {
					return string(part)
				}
			}
		}
		return ""
	}
	s.test = cmp.Or(find(`(?m)^\s*--- FAIL: ([^\s/]+)`), find(`(?m)^(panic: .*|fatal error: .*)$`))
	s.seed = find(`MORTISE_SEED=(\d+)|birth\.seed=(\d+)|\bseed[ =](\d+)\b|--- FAIL: TestChaos/(\d+)`)
	if len(s.test) > 44 {
		s.test = s.test[:41] + "..."
	}
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
		if s.failed && !every {
			break
		}
	}
	return all
}

// healthy reports an error if a layer fails with no bug switched on.
func (b *bench) healthy(ctx context.Context, bugs []mutants.Bug, workers int) error {
	var failed []error
	seen := make([]sighting, len(b.layers))
	each(len(b.layers), workers, func(i int) {
		l := b.layers[i]
		seen[i] = b.look(ctx, l, mutants.Bug{}, l.Tests(bugs...))
	}, func(i int) {
		s := seen[i]
		fmt.Printf("%-30s %-9s %-10s %-44s %6s %7s\n", "no bug", "", s.layer, s.test, s.seed,
			s.took.Round(10*time.Millisecond))
		if s.failed || s.slow {
			failed = append(failed, fmt.Errorf("layer %s fails or hangs with no bug planted:\n%s", s.layer, s.output))
		}
	})
	fmt.Println()
	return errors.Join(failed...)
}
