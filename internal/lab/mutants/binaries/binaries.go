// Package binaries builds the tests of packages with an overlay, and runs them. The commands that
// put bugs into the sources, catch and foreign, share it.
//
// Concurrency: a Set may be used by several goroutines. Failure: Build returns the output of the
// compiler; Run reports a failed test in its Outcome. Limits: a test binary runs in the directory
// of its package, as with go test.
package binaries

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
)

// Set is a temporary directory with test binaries.
type Set struct{ dir string }

// New returns an empty set. The caller must call Close.
func New() (*Set, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	return &Set{dir: dir}, nil
}

// Dir returns the directory of the set, in which the caller may write further files.
func (s *Set) Dir() string { return s.dir }

// Close removes the directory.
func (s *Set) Close() { _ = os.RemoveAll(s.dir) }

func (s *Set) binary(pkg string) string {
	return filepath.Join(s.dir, strings.NewReplacer("/", "_", ".", "root").Replace(pkg)+".test")
}

// Build builds the tests of the packages, which are directories below the working directory. A
// package of a nested module is built in its module.
func (s *Set) Build(ctx context.Context, overlay string, packages []string, workers int) error {
	var mu sync.Mutex
	var failed error
	Each(len(packages), workers, func(i int) {
		for _, earlier := range packages[:i] {
			if earlier == packages[i] {
				return
			}
		}
		module := Module(packages[i])
		within, err := filepath.Rel(module, packages[i])
		if err == nil {
			building := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay,
				"-o", s.binary(packages[i]), "./"+filepath.ToSlash(within)) // without symbols the linker is faster
			building.Dir = module
			var out []byte
			if out, err = building.CombinedOutput(); err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, fmt.Errorf("building the tests of %s: %w", packages[i], err))
		}
	}, func(int) {})
	return failed
}

// Module returns the directory of the module to which a package belongs.
func Module(pkg string) string {
	for dir := pkg; dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	return "."
}

// Outcome is the result of one run of a test binary.
type Outcome struct {
	Failed bool
	Slow   bool   // it did not finish within its limit, or the context ended
	Test   string // the test that failed, or how the process ended
	Seed   string // the seed with which it failed, if it has seeds
	Took   time.Duration
	Output []byte
}

// Run runs the tests of a package with the given arguments and additional variables.
func (s *Set) Run(ctx context.Context, pkg string, args, env []string, limit time.Duration) Outcome {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, s.binary(pkg), append(args, "-test.timeout", (2*limit).String())...)
	c.Dir = pkg
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = time.Second // a process that the tests have started may still hold the output
	begun := time.Now()
	out, err := c.CombinedOutput()
	o := Outcome{Failed: err != nil && ctx.Err() == nil, Slow: ctx.Err() != nil, Took: time.Since(begun), Output: out}
	if o.Failed {
		o.read()
	}
	return o
}

func (o *Outcome) read() {
	find := func(form string) string {
		for _, m := range regexp.MustCompile(form).FindAllSubmatch(o.Output, 1) {
			for _, part := range m[1:] {
				if len(part) > 0 {
					return string(part)
				}
			}
		}
		return ""
	}
	o.Test = cmp.Or(find(`(?m)^\s*--- FAIL: ([^\s/]+)`), find(`(?m)^(panic: .*|fatal error: .*)$`))
	o.Seed = find(`MORTISE_SEED=(\d+)|birth\.seed=(\d+)|\bseed[ =](\d+)\b|--- FAIL: TestChaos/(\d+)`)
}

// Each calls f for every index below n, on the given number of goroutines. It also calls next for
// every index, in ascending order and only after f has returned for that index.
func Each(n, workers int, f func(int), next func(int)) {
	slots := make(chan struct{}, max(workers, 1))
	done := make([]chan struct{}, n)
	var group sync.WaitGroup
	for i := range n {
		done[i] = make(chan struct{})
	}
	group.Go(func() {
		for i := range n {
			slots <- struct{}{}
			group.Go(func() {
				f(i)
				<-slots
				close(done[i])
			})
		}
	})
	for i := range n {
		<-done[i]
		next(i)
	}
	group.Wait()
}
