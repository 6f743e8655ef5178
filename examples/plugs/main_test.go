package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// The job of the one plug fills the stock, requests of the other one take from it, and the service
// ends in good order.
func TestTwoPlugsAndOwnLocksShareANode(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener) }()
	post := func() (string, int) {
		response, err := http.Post("http://"+listener.Addr().String()+"/orders/42", "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), response.StatusCode
	}
	text, status := post()
	for begin := time.Now(); status == http.StatusConflict; text, status = post() { // until the first tick
		if time.Since(begin) > time.Minute {
			t.Fatalf("the job has not run: %s", text)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if text != "ordered\n" || status != http.StatusOK {
		t.Errorf("%d, %q", status, text)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the service has not ended")
	}
}
