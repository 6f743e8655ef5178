package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func commit(t *testing.T, root string) {
	t.Helper()
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b.c",
		"-c", "commit.gpgsign=false", "commit", "-q", "-m", "x"}} {
		if out, err := git(root, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
}

// The planted tree has a file that moves from one room to another with a change, a file that goes,
// a generated file, and files of five rooms.
func TestRooms(t *testing.T) {
	root := t.TempDir()
	if out, err := git(root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	moved := "package moved\n\nfunc A() int {\n\treturn 1\n}\n\nfunc B() int {\n\treturn 2\n}\n"
	write(t, root, map[string]string{
		"face.go": "package face\n", "raftlog/moved.go": moved, "shard/gone.go": "package shard\n\nvar x = 1\n",
		"transport/wire/x.pb.go": moved, "README.md": "# no code\n",
	})
	commit(t, root)
	if err := os.Remove(filepath.Join(root, "shard/gone.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "raftlog/moved.go")); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{
		"face.go":                "package face\n\n// a comment\n/* and\none more */\n\nvar a = `two\n\nlines` // three\n",
		"lockfsm/moved.go":       moved + "\nvar one = 1\n",
		"raftlog/new_test.go":    "package raftlog\n",
		"internal/lab/x_test.go": "package lab\n",
		"session/client/deep.go": "package client\n\nvar (\n\ta = 1\n\n\tb = 2\n)\n",
	})
	commit(t, root)
	var out strings.Builder
	if err := printRooms(&out, root, "HEAD~1"); err != nil {
		t.Fatal(err)
	}
	is := map[string]string{}
	for line := range strings.Lines(out.String()) {
		if name := strings.TrimSpace(line[:min(24, len(line))]); len(line) > 24 {
			is[name] = strings.Join(strings.Fields(line[24:]), " ")
		}
	}
	for room, want := range map[string]string{
		"room": "HEAD~1 HEAD change", "face": "1 4 +3", "log": "0 0 +0", "rules": "7 8 +1", "client": "0 5 +5",
		"what ships": "8 17 +9", "port": "0 0 +0", "on top": "2 0 -2", "lab": "0 1 +1", "tests": "0 1 +1",
	} {
		if is[room] != want {
			t.Errorf("%s: %q, want %q", room, is[room], want)
		}
	}
	if want := "\n1 files are gone:\nshard/gone.go\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("the end is not %q:\n%s", want, out.String())
	}
}

// Each room is in one of the tables that are printed, and no directory has two rooms.
func TestEachRoomIsPrinted(t *testing.T) {
	printed := map[string]bool{}
	for _, name := range append(ships[:], beside[:]...) {
		if printed[name] {
			t.Errorf("%s is printed twice", name)
		}
		printed[name] = true
	}
	for dir, name := range rooms() {
		if !printed[name] {
			t.Errorf("the room %s of %s is not printed", name, dir)
		}
	}
}

const planted = `a.go <- b.go: A
b.go <- a.go: work

4 files, 4 uses, 1 pairs, 1 against the layering
3 in a knot: a.go b.go c.go
`

func TestPairs(t *testing.T) {
	t.Setenv("GOWORK", "off")
	root := t.TempDir()
	write(t, root, map[string]string{
		"go.mod": "module planted\n\ngo 1.25\n", "top.go": "package planted\n",
		"p/a.go": "package p; type A struct{}; func (a A) use() { a.work() }",
		"p/b.go": "package p; func (A) work() { var _ A; C() }",
		"p/c.go": "package p; func C() { A{}.use() }", "p/d.go": "package p",
	})
	for _, dir := range []string{"p", "./p"} {
		var out strings.Builder
		if err := printPairs(&out, root, dir); err != nil || out.String() != planted {
			t.Errorf("%v, printed:\n%s", err, out.String())
		}
	}
	var out strings.Builder
	if err := printUses(&out, root); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	const want = "\ndirectory files uses pairs against knot\np 4 4 1 1 3\nall 5 4 1 1 3"
	if is := strings.Join(rows, "\n"); is != want {
		t.Errorf("printed %q, want %q", is, want)
	}
	list := filepath.Join(root, "list.txt")
	write(t, root, map[string]string{"list.txt": "p 5 1 9\ngone 3 3 3\n"})
	if err := lowerAll(root, list); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(list); err != nil || !strings.HasSuffix(string(text), "-lower\np 1 1 3\n") {
		t.Errorf("lowered to %v\n%s", err, text)
	}
}
