package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestServesAndLeaves(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	ctx, stop := context.WithCancel(t.Context())
	t.Setenv("ORDERS_HTTP", address)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
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

// An instance that waits for others must be healthy. Otherwise it would be restarted, and the
// others would never find it.
func TestNotReadyIsAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	ctx, stop := context.WithCancel(t.Context())
	for name, value := range map[string]string{
		"ORDERS_HTTP": address, "ORDERS_LOCK_BIND": "127.0.0.1:0", "ORDERS_LOCK_JOIN": "127.0.0.1:1",
		"ORDERS_LOCK_REPLICAS": "2",
	} {
		t.Setenv(name, value)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
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

func TestMisspeltVariableEndsTheStart(t *testing.T) {
	t.Setenv("ORDERS_LOCK_REPLICA", "3")
	if err := run(t.Context()); err == nil || !strings.Contains(err.Error(), "ORDERS_LOCK_REPLICA") {
		t.Errorf("the error is %v", err)
	}
}

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
