package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os/exec"
	"path"
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
		"fence/sqltest": "lab", "scripts": "lab", "adapters/mortisecollector/compare": "lab",
		"adapters/mortisecollector/whole": "lab",
		"adapters/mortisedropin/compare":  "lab",

		// The rooms of the lab before it had a house of its own.
		"internal/attack": "lab", "internal/check": "lab", "internal/e2e": "lab", "internal/fakelock": "lab",
		"internal/logtest": "lab", "internal/mutants": "lab", "internal/policy": "lab", "internal/postgres": "lab",
		"internal/process": "lab", "internal/proctest": "lab", "internal/publish": "lab", "internal/sim": "lab",
		"internal/trio": "lab",
	}
}

// ships are the rooms that every program links that uses mortise, and beside the others that users
// can add.
var ships = [...]string{"face", "session", "client", "keeper", "log", "rules", "replica", "cluster", "port",
	"glue and values"}
var beside = [...]string{"for users' tests", "on top", "programs and pages", "adapters", "examples", "lab", "tests"}

// printRooms prints the lines of each room at a revision and at HEAD.
func printRooms(out io.Writer, root, since string) error {
	moved, gone, err := changes(root, since)
	if err != nil {
		return err
	}
	before, now := map[string]int{}, map[string]int{}
	for revision, into := range map[string]map[string]int{since: before, "HEAD": now} {
		files, err := tree(root, revision)
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
	fmt.Fprintf(out, "%-24s %8s %8s %8s\n", "room", since, "HEAD", "change")
	row := func(name string, a, b int) { fmt.Fprintf(out, "%-24s %8d %8d %+8d\n", name, a, b, b-a) }
	a, b := 0, 0
	for _, name := range ships {
		row(name, before[name], now[name])
		a, b = a+before[name], b+now[name]
	}
	row("what ships", a, b)
	for _, name := range beside {
		row(name, before[name], now[name])
	}
	fmt.Fprintf(out, "\n%d files are gone:\n%s\n", len(gone), strings.Join(gone, "\n"))
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

func git(root string, args ...string) *exec.Cmd {
	return exec.Command("git", append([]string{"-C", root}, args...)...)
}

// changes returns the new name of each file that has moved, and the files of Go that are gone.
func changes(root, since string) (moved map[string]string, gone []string, err error) {
	out, err := git(root, "diff", "-M40%", "-l0", "--name-status", "--diff-filter=RD", since, "HEAD").Output()
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
func tree(root, revision string) (map[string][]byte, error) {
	names, err := git(root, "ls-tree", "-r", "--name-only", revision).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-tree %s: %w", revision, err)
	}
	var list []string
	for name := range strings.Lines(string(names)) {
		if name = strings.TrimSpace(name); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".pb.go") {
			list = append(list, name)
		}
	}
	show := git(root, "cat-file", "--batch")
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
			return len(code)
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
