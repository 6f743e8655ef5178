// Package page builds the page on which people try mortise in a browser: docs/try/index.html, the
// compiled simulation, and the JavaScript file of the Go distribution that starts it. A static web
// server can serve the result.
package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build writes the three files into a directory, which exists. The parameter root is the root of
// the module.
func Build(ctx context.Context, root, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
		filepath.Join(dir, "mortise.wasm"), "./internal/lab/try/wasm")
	build.Dir, build.Env = root, append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	goRoot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	return errors.Join(
		copyFile(filepath.Join(strings.TrimSpace(string(goRoot)), "lib", "wasm", "wasm_exec.js"), dir),
		copyFile(filepath.Join(root, "docs", "try", "index.html"), dir))
}

func copyFile(from, dir string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(from)), text, 0o644)
}
