// Command size prints the lines of code of each room of the tree, beside those of an earlier
// revision, and the files that are gone since. A line counts if it is not blank and not only a
// comment. Generated files do not count.
//
//	go run ./internal/lab/size [-since REVISION]
//
// A file that has moved counts in both columns where it is now, if git finds it again. The programs
// git and go must be installed, and the working directory is that of the repository.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// rooms returns the room of each directory. The longest matching directory counts.
func rooms() map[string]string {
	return map[string]string{
		".":       "face",
		"session": "session", "session/client": "client", "session/stay": "client", "session/keeper": "keeper",
		"raftlog": "log", "lockfsm": "rules", "internal/replica": "replica", "cluster": "cluster",
		"transport": "port", "internal": "glue and values",
		"internal/memnet": "for users' tests", "mortisetest": "for users' tests",
		"fence": "on top", "election": "on top", "shard": "on top", "presence": "on top", "barrier": "on top",
		"counter": "on top", "tick": "on top", "keep": "on top", "keys": "on top", "flight": "on top", "stripe": "on top",
		"locker": "on top", "console": "programs and pages", "cmd": "programs and pages", "adapters": "adapters",
		"internal/guest": "programs and pages", "internal/tofu": "programs and pages",

		"internal/lab": "lab", "bench": "lab", "judge": "lab", "model": "lab", "deploy": "lab", "examples": "examples",
		"fence/sqltest": "lab", "scripts": "lab", "adapters/mortisedropin/compare": "lab",
	}
}

// ships are the rooms that every program links that uses mortise, and beside the others that users
// can add.
var ships = [...]string{"face", "session", "client", "keeper", "log", "rules", "replica", "cluster", "port",
	"glue and values"}
var beside = [...]string{"for users' tests", "on top", "programs and pages", "adapters", "examples", "lab", "tests"}

func main() {
	since := flag.String("since", "190ab2c2", "the earlier revision")
	flag.Parse()
	if err := run(*since); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(since string) error {
	moved, gone, err := changes(since)
	if err != nil {
		return err
	}
	before, now := map[string]int{}, map[string]int{}
	for revision, into := range map[string]map[string]int{since: before, "HEAD": now} {
		files, err := tree(revision)
		if err != nil {
			return err
		}
		for name, text := range files {
			if revision == since {
				name = cmp.Or(moved[name], name)
			}
			into[room(name)] += lines(text)
		}
	}
	fmt.Printf("%-24s %8s %8s %8s\n", "room", since, "HEAD", "change")
	row := func(name string, a, b int) { fmt.Printf("%-24s %8d %8d %+8d\n", name, a, b, b-a) }
	a, b := 0, 0
	for _, name := range ships {
		row(name, before[name], now[name])
		a, b = a+before[name], b+now[name]
	}
	row("what ships", a, b)
	for _, name := range beside {
		row(name, before[name], now[name])
	}
	fmt.Printf("\n%d files are gone:\n%s\n", len(gone), strings.Join(gone, "\n"))
	return nil
}

// room returns the room of a file.
func room(name string) string {
	all := rooms()
	dir := path.Dir(name)
	for at := dir; ; at = path.Dir(at) {
		if found := all[at]; found != "" {
			if strings.HasSuffix(name, "_test.go") && found != "lab" {
				return "tests"
			}
			return found
		}
		if at == "." || at == "/" {
			return "lab"
		}
	}
}

// changes returns the new name of each file that has moved, and the files of Go that are gone.
func changes(since string) (moved map[string]string, gone []string, err error) {
	out, err := exec.Command("git", "diff", "-M40%", "-l0", "--name-status", "--diff-filter=RD", since, "HEAD").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("git diff: %w", err)
	}
	moved = map[string]string{}
	for line := range strings.Lines(string(out)) {
		switch f := strings.Fields(line); {
		case len(f) == 3:
			moved[f[1]] = f[2]
		case len(f) == 2 && strings.HasSuffix(f[1], ".go"):
			gone = append(gone, f[1])
		}
	}
	return moved, gone, nil
}

// tree returns the files of Go of a revision that are not generated.
func tree(revision string) (map[string][]byte, error) {
	names, err := exec.Command("git", "ls-tree", "-r", "--name-only", revision).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-tree %s: %w", revision, err)
	}
	var list []string
	for name := range strings.Lines(string(names)) {
		if name = strings.TrimSpace(name); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".pb.go") {
			list = append(list, name)
		}
	}
	show := exec.Command("git", "cat-file", "--batch")
	show.Stdin = strings.NewReader(revision + ":" + strings.Join(list, "\n"+revision+":") + "\n")
	out, err := show.Output()
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	files := map[string][]byte{}
	for _, name := range list {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		size := 0
		if _, err := fmt.Sscanf(string(head), "%s blob %d", new(string), &size); err != nil || size >= len(rest) {
			return nil, fmt.Errorf("git cat-file says %q of %s", head, name)
		}
		files[name], out = rest[:size], rest[size+1:]
	}
	return files, nil
}

// lines counts the lines on which a token begins or a text continues.
func lines(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	code := map[int]bool{}
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(slices.Collect(maps.Keys(code)))
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(at)
		for i := range 1 + strings.Count(literal, "\n") {
			code[first+i] = true
		}
	}
}
