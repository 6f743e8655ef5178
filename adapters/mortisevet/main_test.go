package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// program has one mistake for each rule.
const program = `package main

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise"
)

func main() {}

func charge(ctx context.Context) error { return ctx.Err() }

func leak(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	return charge(lock.Context(ctx))
}

func outer(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(context.Context, mortise.Token) error { return charge(ctx) })
}

func copies(lock *mortise.Lock) { _ = []any{*lock} }

func drops(lock *mortise.Lock) { lock.Token() }

func ignores(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return charge(lock.Context(ctx))
}

func right(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return charge(lock.Context(ctx))
}
`

// TestGoVet builds the command, and runs it as users do on a module of their own.
func TestGoVet(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "mortisevet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	user, fake := filepath.Join(dir, "user"), filepath.Join(dir, "mortise")
	if err := os.CopyFS(fake, os.DirFS("rules/testdata/src/github.com/mortise-lock/mortise")); err != nil {
		t.Fatal(err)
	}
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fake, "go.mod", "module github.com/mortise-lock/mortise\n\ngo 1.26.0\n")
	write(user, "go.mod", "module example.com/user\n\ngo 1.26.0\n\nrequire github.com/mortise-lock/mortise v0.1.0\n\n"+
		"replace github.com/mortise-lock/mortise => ../mortise\n")
	write(user, "main.go", program)
	vet := func(flags ...string) (text string, ok bool) {
		t.Helper()
		c := exec.Command("go", append(append([]string{"vet", "-vettool=" + tool}, flags...), "./...")...)
		c.Dir, c.Env = user, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := c.CombinedOutput()
		return string(out), err == nil
	}
	wants := map[string]string{
		"lockleak":     "main.go:15:15: the lock of Lock is not unlocked on every path: the return in line 19 is reached",
		"outerctx":     "main.go:23:86: ctx does not end when the lock is lost",
		"copiedlock":   "main.go:26:45: the literal copies a mortise.Lock",
		"droppedtoken": "main.go:28:34: the token is dropped",
		"unlockerr":    "main.go:35:8: the error of Unlock is ignored",
	}
	report := regexp.MustCompile(`(?m)^main\.go:\d+:\d+: \w`) // not a line with a tab, which names another place
	all, ok := vet()
	if ok || len(report.FindAllString(all, -1)) != len(wants) {
		t.Errorf("go vet succeeded: %v, and printed\n%s", ok, all)
	}
	for rule, want := range wants {
		if !strings.Contains(all, want) {
			t.Errorf("go vet printed no %q:\n%s", want, all)
		}
		if one, ok := vet("-" + rule); ok || len(report.FindAllString(one, -1)) != 1 || !strings.Contains(one, want) {
			t.Errorf("with -%s go vet succeeded: %v, and printed\n%s", rule, ok, one)
		}
	}
	if text, ok := vet("-lockleak=false", "-outerctx=false", "-copiedlock=false", "-droppedtoken=false",
		"-unlockerr=false"); !ok {
		t.Errorf("without rules go vet failed:\n%s", text)
	}
}
