package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/internal/lab/policy"
)

// tree has the packages of all areas and their points.
type tree struct {
	loader   *loader
	packages map[string]*checked
	points   map[string]map[op][]*point // by area and kind
	all      []*point
}

func plant(ctx context.Context, in []area) (*tree, error) {
	var dirs []string
	for _, a := range in {
		dirs = append(dirs, a.dirs...)
	}
	l, err := load(ctx, dirs)
	if err != nil {
		return nil, err
	}
	t := &tree{loader: l, packages: map[string]*checked{}, points: map[string]map[op][]*point{}}
	for _, a := range in {
		t.points[a.name] = map[op][]*point{}
		for _, dir := range a.dirs {
			c, err := l.check(dir, nil)
			if err != nil {
				return nil, err
			}
			t.packages[dir] = c
			for _, file := range c.files {
				if name := l.set.Position(file.Pos()).Filename; policy.IsCore(dir, filepath.Base(name)) {
					continue
				}
				for _, p := range c.points(l.set, file) {
					p.area, p.dir = a.name, dir
					t.all = append(t.all, p)
				}
			}
		}
	}
	for _, p := range t.all {
		t.points[p.area][p.op] = append(t.points[p.area][p.op], p)
	}
	return t, nil
}

// keep removes all points that do not satisfy the condition.
func (t *tree) keep(condition func(*point) bool) {
	t.all = slices.DeleteFunc(t.all, func(p *point) bool { return !condition(p) })
	for _, kinds := range t.points {
		for kind := range kinds {
			kinds[kind] = slices.DeleteFunc(kinds[kind], func(p *point) bool { return !condition(p) })
		}
	}
}

// draw returns n points, which have numbers, compile and do not cross. It draws from the areas
// in turn: a kind, then a point. Equal seeds and sources give equal points.
func (t *tree) draw(in []area, n int, seed uint64) []*point {
	random := rand.New(rand.NewPCG(seed, 51))
	var round []string
	for _, a := range in {
		round = append(round, a.name)
	}
	var drawn []*point
	refused := map[*point]bool{}
	for tries := 0; tries < 40*n+400; {
		for ; len(drawn) < n && tries < 40*n+400; tries++ {
			if tries%len(round) == 0 {
				random.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
			}
			some := t.points[round[tries%len(round)]][ops[random.IntN(len(ops))]]
			if len(some) == 0 {
				continue
			}
			p := some[random.IntN(len(some))]
			if !refused[p] && !slices.Contains(drawn, p) && !slices.ContainsFunc(drawn, p.crosses) {
				drawn = append(drawn, p)
			}
		}
		if drawn = t.compiling(drawn, refused); len(drawn) == n {
			break
		}
	}
	return drawn
}

// compiling numbers the points and returns those that compile. It adds the others to refused.
func (t *tree) compiling(drawn []*point, refused map[*point]bool) []*point {
	byDir := map[string][]*point{}
	for i, p := range drawn {
		p.n = i + 1
		byDir[p.dir] = append(byDir[p.dir], p)
	}
	compiles := func(dir string, points []*point) bool {
		_, err := t.loader.check(dir, overlaid(t.packages[dir], dir, points, len(drawn)))
		return err == nil
	}
	for dir, here := range byDir {
		if compiles(dir, here) {
			continue
		}
		for _, p := range here {
			refused[p] = !compiles(dir, []*point{p})
		}
	}
	drawn = slices.DeleteFunc(drawn, func(p *point) bool { return refused[p] })
	for i, p := range drawn {
		p.n = i + 1
	}
	return drawn
}

// lines are the first and the last line of a part of a file.
type lines struct{ first, last int }

// changedSince returns a condition for points on lines that differ from the revision, also in files
// that git does not have yet.
func changedSince(ctx context.Context, revision string) (func(*point) bool, error) {
	diff, err := exec.CommandContext(ctx, "git", "diff", "-U0", "--no-prefix", "--no-color", "--no-ext-diff",
		"--relative", revision, "--", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w", revision, err)
	}
	added, err := exec.CommandContext(ctx, "git", "ls-files", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	changed := hunks(string(diff))
	for name := range strings.Lines(string(added)) {
		changed[strings.TrimSpace(name)] = []lines{{1, math.MaxInt}}
	}
	return func(p *point) bool {
		return slices.ContainsFunc(changed[p.file], func(l lines) bool { return l.first <= p.last && p.line <= l.last })
	}, nil
}

// hunks returns the changed lines of each file in the output of git diff -U0 --no-prefix.
func hunks(diff string) map[string][]lines {
	changed := map[string][]lines{}
	hunk := regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
	file := ""
	for line := range strings.Lines(diff) {
		if name, is := strings.CutPrefix(line, "+++ "); is {
			file = strings.TrimSpace(name)
		} else if m := hunk.FindStringSubmatch(line); m != nil {
			first, _ := strconv.Atoi(m[1])
			count := 1
			if m[2] != "" {
				count, _ = strconv.Atoi(m[2])
			}
			if count > 0 { // else lines were only removed
				changed[file] = append(changed[file], lines{first, first + count - 1})
			}
		}
	}
	return changed
}
