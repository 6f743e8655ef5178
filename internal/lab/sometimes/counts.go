package main

import (
	"fmt"
	"strings"
)

// module is the prefix of the paths in a profile.
const module = "github.com/mortise-lock/mortise/"

// position is a place in a file, both from 1.
type position struct{ line, column int }

func (p position) before(q position) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// block is a line of a coverage profile: statements that run together, and how often they ran.
type block struct {
	file     string // path below the root
	from, to position
	count    int
}

// blocks reads a coverage profile.
func blocks(profile string) (all []block, err error) {
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		file, rest, found := strings.Cut(strings.TrimPrefix(line, module), ":")
		b, statements := block{file: file}, 0
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column,
			&statements, &b.count); err != nil || !found {
			return nil, fmt.Errorf("%q is not a line of a profile", line)
		}
		all = append(all, b)
	}
	return all, nil
}

// counts returns how often each point was reached. Several profiles may count the same block.
func counts(points []point, all []block) []int {
	byFile := map[string][]block{}
	for _, b := range sums(all) {
		byFile[b.file] = append(byFile[b.file], b)
	}
	reached := make([]int, len(points))
	for i, p := range points {
		at := position{p.line, p.column}
		for _, b := range byFile[p.file] {
			// A block begins at the brace or colon before its first statement. One without statements is
			// a place only.
			if !at.before(b.from) && (at.before(b.to) || at == b.from) {
				reached[i] += b.count
			}
		}
	}
	return reached
}

// sums adds the counts of equal blocks. The same profile has each block once for each test binary.
func sums(all []block) []block {
	sum := map[block]int{}
	for _, b := range all {
		n := b.count
		b.count = 0
		sum[b] += n
	}
	all = make([]block, 0, len(sum))
	for b, n := range sum {
		b.count = n
		all = append(all, b)
	}
	return all
}

// rigged begins a reason that names a rig which reaches what no campaign reaches, and why none
// does.
const rigged = "rig: "

// exceptions returns the reasons of exceptions.txt by what they are about: a file, a file and a
// function, or the name of one point. A line has these, " -- " and the reason.
func exceptions(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, found := strings.Cut(line, " -- ")
		if !found || name == "" || reason == "" {
			return nil, fmt.Errorf("exceptions.txt: %q is not a branch, two dashes and a reason", line)
		}
		if _, twice := reasons[name]; twice {
			return nil, fmt.Errorf("exceptions.txt: %q stands twice", name)
		}
		reasons[name] = reason
	}
	return reasons, nil
}

// reason returns why a point may stay unreached, and what says so. The result about is empty if
// nothing does.
func (p point) reason(reasons map[string]string) (about, reason string) {
	for _, about := range [...]string{p.name(), p.file + " " + p.fun, p.file} {
		if reason, found := reasons[about]; found {
			return about, reason
		}
	}
	return "", ""
}
