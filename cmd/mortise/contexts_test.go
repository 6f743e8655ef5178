//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func contexts(t *testing.T, text string, more ...string) (*fleet, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "contexts.json")
	for name, text := range map[string]string{path: text, filepath.Join(dir, "secret"): testSecret + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &fleet{t: t, common: append([]string{"CONTEXTS=" + path}, more...)}, path
}

// A flag overrides the context, and a variable that contradicts the context is rejected.
func TestContexts(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	address := f.agents[0].Address
	text := `{"contexts": {
		"here": {"join": ["` + address + `", "127.0.0.1:1"], "secret_file": "secret"},
		"none": {"join": ["127.0.0.1:1"], "secret_file": "secret"},
		"own": {"env_prefix": "ORDERS_LOCK", "join": ["` + address + `"]},
		"certs": {"join": ["` + address + `"], "tls_cert": "cert", "tls_key": "key", "tls_ca": "/ca"}
	}}`
	x, path := contexts(t, text)
	secret := filepath.Join(filepath.Dir(path), "secret")

	x.mortise("ls", "-context", "here").wants(t, exitOK)
	by, _ := contexts(t, text, "CONTEXT=here")
	by.mortise("ls").wants(t, exitOK)
	by.mortise("ls", "-context", "none", "-timeout", "300ms").wants(t, exitNotReady)
	x.mortise("ls", "-context", "none", "-join", address).wants(t, exitOK)
	x.mortise("ls", "-context", "certs", "-secret-file", secret).wants(t, exitOK)
	x.mortise("ls", "-context", "certs").wants(t, exitUsage, filepath.Join(filepath.Dir(path), "cert"))
	x.mortise("ls").wants(t, exitUsage, "-join")

	x.mortise("ls", "-context", "her").wants(t, exitUsage, `no context "her"; it has: certs, here, none, own`, path)
	for variable, value := range map[string]string{"JOIN": "127.0.0.1:2", "SECRET": testSecret,
		"SECRET_FILE": "/other"} {
		differs, _ := contexts(t, text, variable+"="+value)
		differs.mortise("ls", "-context", "here").wants(t, exitUsage, `"here"`, "MORTISE_"+variable, "contradict each other")
	}
	same, _ := contexts(t, text, "JOIN="+address+",127.0.0.1:1", "NAME=n", "SESSION_TTL=5s")
	same.mortise("ls", "-context", "here").wants(t, exitOK)

	cmd := x.command("ls", "-context", "own")
	cmd.Env = append(cmd.Env, "ORDERS_LOCK_SECRET="+testSecret, "MORTISE_SECRET=nonsense")
	x.finish(cmd).wants(t, exitOK)
	cmd = x.command("ls", "-context", "own", "-env-prefix", "MORTISE")
	cmd.Env = append(cmd.Env, "MORTISE_SECRET="+testSecret, "ORDERS_LOCK_SECRET=nonsense")
	x.finish(cmd).wants(t, exitOK)

	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	x.mortise("ls", "-context", "here").wants(t, exitOK, "every user of this machine", "chmod 600 "+secret)
}

// Errors in the file of contexts must be reported before an instance is queried.
func TestWhatNoContextMayBe(t *testing.T) {
	for text, want := range map[string]string{
		`{"contexts": {"x": {"secret": "msk1_a"}}}`:                         "secret_file",
		`{"contexts": {"y": {"secret": "msk1_a"}, "x": {"join": ["a:1"]}}}`: `context "y" contains a secret`,
		`{"contexts": {"x": {"joins": ["a:1"]}}}`:                           "joins",
		`{"contexts": {}}`: "it has: none",
		`{`:                "contexts.json",
	} {
		f, _ := contexts(t, text)
		s := f.mortise("ls", "-context", "x").wants(t, exitUsage, want)
		if strings.Contains(s.out+s.errs, "msk1_") {
			t.Errorf("the secret is shown: %s", s.errs)
		}
	}
	f, path := contexts(t, `{"contexts": {"x": {"join": ["127.0.0.1:1"]}}}`)
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	f.mortise("ls", "-context", "x").wants(t, exitUsage, "other users may write it")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.mortise("ls", "-context", "x").wants(t, exitUsage, "does not exist", path)

	home := t.TempDir()
	cmd := (&fleet{t: t}).command("ls", "-context", "x")
	cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+home, "HOME="+home)
	f.finish(cmd).wants(t, exitUsage, filepath.Join("mortise", "contexts.json"))
}

// TestOwnVariablesAreNoSettings sets each variable that the sources name. The configuration of the
// cluster has the same prefix as the command's own variables, and refuses those that it does not
// know.
func TestOwnVariablesAreNoSettings(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range regexp.MustCompile(`\bprefix ?\+ ?"_([A-Z_]+)[="]`).FindAllSubmatch(text, -1) {
			found[string(one[1])] = true
		}
	}
	if !found["CONSOLES"] || !found["BEAT"] || !found["KEY"] {
		t.Errorf("found only %v", found)
	}
	for name := range found {
		t.Setenv(prefix+"_"+name, "")
	}
	for name := range found {
		if err := os.Setenv(prefix+"_"+name, "x"); err != nil {
			t.Fatal(err)
		}
		c := &call{prefix: prefix}
		if _, err := c.config(); err != nil && strings.Contains(err.Error(), "no such setting") {
			t.Errorf("%s_%s: %v", prefix, name, err)
		}
		_ = os.Unsetenv(prefix + "_" + name)
	}
}
