//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise/internal/tofu"
)

// stateStore is a store for one state, as the address of the http backend names it.
func stateStore(t *testing.T) *httptest.Server {
	var mu sync.Mutex
	var state []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.Method {
		case http.MethodGet:
			if state == nil {
				w.WriteHeader(http.StatusNoContent)
			}
			_, _ = w.Write(state)
		case http.MethodPost:
			state, _ = io.ReadAll(r.Body)
		case http.MethodDelete:
			state = nil
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// tofuDir is a directory with a configuration whose apply creates the file held, and then waits for
// the file go.
type tofuDir struct {
	t            *testing.T
	program, dir string
}

func (d tofuDir) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.program, args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
	return cmd
}

func (d tofuDir) run(well bool, args ...string) string {
	d.t.Helper()
	out, err := d.command(args...).CombinedOutput()
	if d.t.Logf("$ %s\n%s", strings.Join(args, " "), out); (err == nil) != well {
		d.t.Errorf("%v: %v", args, err)
	}
	return string(out)
}

// The protocol of the tests must be that of the program: an apply holds the lock, another run is
// refused with the ID of the lock, and force-unlock ends the hold of an apply that was killed.
func TestTheProgramItself(t *testing.T) {
	program, err := exec.LookPath("tofu")
	if err != nil {
		program, err = exec.LookPath("terraform")
	}
	if err != nil {
		t.Skip("neither tofu nor terraform is there")
	}
	const token = "0123456789abcdef0123456789abcdef"
	allowed, err := (&call{}).readTokens("", token)
	if err != nil {
		t.Fatal(err)
	}
	i, store := openInn(t, allowed, standard), stateStore(t)
	var dirs [2]tofuDir
	for n := range dirs {
		dirs[n] = tofuDir{t, program, t.TempDir()}
		text := fmt.Sprintf(`
terraform {
  backend "http" {
    address        = %q
    lock_address   = "%s"
    unlock_address = "%[2]s&any=true"
    username       = "tofu"
    password       = %[3]q
  }
}
resource "terraform_data" "work" {
  provisioner "local-exec" {
    command = "touch held; while ! test -e go; do sleep 0.1; done"
  }
}
`, store.URL, i.stateLock("network/prod"), token)
		if err := os.WriteFile(filepath.Join(dirs[n].dir, "main.tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		dirs[n].run(true, "init", "-no-color")
	}
	one, two := dirs[0], dirs[1]
	apply := one.command("apply", "-no-color", "-auto-approve")
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the apply holds the lock", func() error {
		_, err := os.Stat(filepath.Join(one.dir, "held"))
		return err
	})
	k, err := i.node.Peek(t.Context(), "network/prod")
	if err != nil || len(k.Queue) != 1 || !strings.HasPrefix(k.Queue[0].Value, "OperationTypeApply by ") {
		t.Errorf("the leader shows %+v, %v", k, err)
	}
	id := regexp.MustCompile(`ID[:=]\s*([0-9a-f-]{36})`).FindStringSubmatch(two.run(false, "plan", "-no-color"))
	if id == nil || id[1] != k.Queue[0].Labels[tofu.LabelID] {
		t.Fatalf("the refused run names %q, the lock has the labels %v", id, k.Queue[0].Labels)
	}
	_ = apply.Process.Kill()
	_ = apply.Wait()
	_ = os.WriteFile(filepath.Join(one.dir, "go"), nil, 0o600) // ends the shell that it has left
	two.run(false, "plan", "-no-color")
	two.run(true, "force-unlock", "-no-color", "-force", id[1])
	if err := os.WriteFile(filepath.Join(two.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	two.run(true, "apply", "-no-color", "-auto-approve")
	if k, err := i.node.Peek(t.Context(), "network/prod"); err != nil || k.Held != 0 {
		t.Errorf("after the apply the leader shows %+v, %v", k, err)
	}
}
