package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServesAndLeaves runs the program on its own: it becomes ready, answers both probes, and ends without an error when it is told to.
func TestServesAndLeaves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, func(name string) string { return map[string]string{"ORDERS_HTTP": address}[name] })
	}()
	for _, path := range []string{"/healthz", "/readyz"} {
		if err := await(t, "http://"+address+path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(drainWithin + leaveWithin):
		t.Fatal("it has not ended")
	}
}

// TestNotReadyIsAlive: an instance that waits for others must not be restarted for it, or the others could never find it.
func TestNotReadyIsAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	env := map[string]string{"ORDERS_HTTP": address, "ORDERS_LOCK_BIND": "127.0.0.1:0", "ORDERS_LOCK_JOIN": "127.0.0.1:1", "ORDERS_LOCK_REPLICAS": "2"}
	go func() { ended <- run(ctx, func(name string) string { return env[name] }) }()
	if err := await(t, "http://"+address+"/healthz"); err != nil {
		t.Error(err)
	}
	answer, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz says %s without the other instance", answer.Status)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestConfigurationComesFromVariables(t *testing.T) {
	c, err := configured(func(name string) string {
		return map[string]string{"ORDERS_LOCK_JOIN": "a:1,b:2", "ORDERS_LOCK_FOUNDERS": "a,b", "ORDERS_LOCK_SECRET": "s"}[name]
	})
	if err != nil || strings.Join(c.Join, " ") != "a:1 b:2" || strings.Join(c.Founders, " ") != "a b" || c.Secret != "s" || c.Replicas != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	of := func(path string) func(string) string {
		return func(name string) string { return map[string]string{"ORDERS_LOCK_SECRET_FILE": path}[name] }
	}
	if err := os.WriteFile(file, []byte("kept in a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := configured(of(file)); err != nil || c.Secret != "kept in a file" {
		t.Errorf("%q, %v", c.Secret, err)
	}
	if _, err := configured(of(file + "s")); err == nil || !strings.Contains(err.Error(), "SECRET_FILE") {
		t.Errorf("a secret that is not there gives %v", err)
	}
	if _, err := configured(func(string) string { return "three" }); err == nil || !strings.Contains(err.Error(), "REPLICAS") {
		t.Errorf("a number that is none gives %v", err)
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	by := func(path string) func(string) string {
		return func(name string) string { return map[string]string{"ORDERS_LOCK_SECRET_FILE": path}[name] }
	}
	if c, err := configured(by(path)); err != nil || c.Secret != "s" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := configured(by(path + "x")); err == nil || !strings.Contains(err.Error(), "ORDERS_LOCK_SECRET_FILE") {
		t.Errorf("a file that is none gives %v", err)
	}
}

// await asks until the answer is 200, for at most 20 s.
func await(t *testing.T, url string) (err error) {
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	for {
		q, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		answer, failed := http.DefaultClient.Do(q)
		if failed == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
