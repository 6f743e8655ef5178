package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func script(t *testing.T, shell string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"completion", shell}, &out, &errs); code != exitOK {
		t.Fatalf("completion %s ends with %d: %s", shell, code, errs.String())
	}
	file := filepath.Join(t.TempDir(), shell)
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBashCompletes(t *testing.T) {
	file := script(t, "bash")
	for line, want := range map[string]string{
		"do":             "doctor",
		"run -tl":        "-tls-cert -tls-key -tls-ca -tls-peers",
		"members -after": "-after",
		"members aft":    "",
		"nothing -":      "",
	} {
		out, err := exec.CommandContext(t.Context(), "bash", "-c",
			`source "$1"; COMP_WORDS=(mortise $2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _mortise; echo ${COMPREPLY[*]}`,
			"bash", file, line).CombinedOutput()
		got := strings.Fields(string(out))
		for _, name := range strings.Fields(want) {
			if err != nil || !bytes.Contains(out, []byte(name)) {
				t.Errorf("mortise %s: %v, %s; want %s", line, err, out, name)
			}
		}
		if len(got) != len(strings.Fields(want)) {
			t.Errorf("mortise %s completes to %q, want %q", line, got, want)
		}
	}
}

// Each installed shell must parse its completion script without errors.
func TestCompletionsAreRead(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		file := script(t, shell)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, cmd := range commands() {
			if !bytes.Contains(text, []byte(cmd.name)) {
				t.Errorf("the script of %s lacks %s", shell, cmd.name)
			}
		}
		if !bytes.Contains(text, []byte("insecure")) || !bytes.Contains(text, []byte("reason")) {
			t.Errorf("the script of %s lacks flags", shell)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not here", shell)
			continue
		}
		if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s -n: %v\n%s", shell, err, out)
		}
	}
}
