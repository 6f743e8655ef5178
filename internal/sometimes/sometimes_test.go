package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

func (q *queue) put(m message) error {
	if len(q.all) == q.most {
		q.dropped++
		return nil
	}
	if m.size > q.bytes {
		return ErrTooLarge
	}
	if err := q.check(m); err != nil {
		return fmt.Errorf("checking: %w", err)
	}
	select {
	case q.news <- m:
	default:
		q.behind = true
	}
	switch m.kind {
	case retired:
		q.retryLater(m)
	case ended:
		return &EndedError{m}
	case plain:
		q.all = append(q.all, m)
	}
	if q.closed {
		return status.Error(codes.Unavailable, "closed")
	} else {
		q.discard(m)
	}
	return nil
}
`

// TestRarePathsAreFound checks which branches of a sample are rare paths, and how their counts are
// read from a profile.
func TestRarePathsAreFound(t *testing.T) {
	points, err := pointsOf("a/sample.go", sample)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range points {
		got = append(got, fmt.Sprintf("%d %s %s", p.line, p.kind, p.name()))
	}
	want := []string{
		"5 lost a/sample.go queue.put: if len(q.all) == q.most",
		"9 refusal a/sample.go queue.put: if m.size > q.bytes",
		"17 lost a/sample.go queue.put: default of a select",
		"21 retry a/sample.go queue.put: case retired",
		"23 refusal a/sample.go queue.put: case ended",
		"28 refusal a/sample.go queue.put: if q.closed",
		"30 lost a/sample.go queue.put: else of q.closed",
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all, err := blocks("mode: atomic\n" + module + "a/sample.go:4.26,7.3 2 7\n" + module +
		"a/sample.go:16.9,17.17 1 3\n" + module + "a/sample.go:16.9,17.17 1 4\n" + module + "b/sample.go:4.26,7.3 2 9\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range counts(points, all) {
		if want := map[int]int{5: 7, 17: 7}[points[i].line]; n != want {
			t.Errorf("line %d was reached %d times, want %d", points[i].line, n, want)
		}
	}
	if _, err := blocks(module + "a/sample.go:4,7 2 7\n"); err == nil {
		t.Error("a line that is none is read")
	}
}

// TestExceptionsAreOfThisTree checks that each exception names a branch that there is, once.
func TestExceptionsAreOfThisTree(t *testing.T) {
	text, err := os.ReadFile("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := exceptions(string(text))
	if err != nil {
		t.Fatal(err)
	}
	points, err := find("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(points) < 200 {
		t.Errorf("found only %d rare paths", len(points))
	}
	names := map[string]bool{}
	for _, p := range points {
		names[p.name()], names[p.file+" "+p.fun], names[p.file] = true, true, true
	}
	for name := range reasons {
		if !names[name] {
			t.Errorf("exceptions.txt names %q, which is not in the source", name)
		}
	}
	for _, wrong := range []string{"a b: c\n", "a -- \n", "a -- b\na -- b\n"} {
		if _, err := exceptions(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
