package mortiseserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/httpleader"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/httplock"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/fence"
)

// Orders are changed one request at a time, on whichever instance they arrive.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	locks := httplock.Middleware{Node: node, Request: func(r *http.Request) (mortise.Request, bool) {
		return mortise.Request{Key: "orders/" + r.PathValue("id"), MaxWaiting: 100}, true
	}}
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", locks.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, locked := mortise.TokenFrom(r.Context()) // this context ends if the lock is lost
		_, _ = fmt.Fprintln(w, "changed under a token:", locked && token > 0)
	})))

	server := httptest.NewServer(mux) // a service uses http.Server
	defer server.Close()
	response, err := http.Post(server.URL+"/orders/42", "text/plain", nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	fmt.Print(response.Status, ": ", string(text), err, "\n")
	// Output:
	// 200 OK: changed under a token: true
	// <nil>
}

// The handler calls a store, which refuses the token of a handler that has lost its lock.
func Example_fence() {
	store := httptest.NewServer(fence.Guard{Store: &fence.Mark{}}.Wrap(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "stored") })))
	defer store.Close()

	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	client := &http.Client{Transport: &fence.Transport{ // sends the token of the context
		Resource: func(r *http.Request) string { return r.URL.Path },
	}}
	locks := httplock.Middleware{Node: node, Request: func(r *http.Request) (mortise.Request, bool) {
		return mortise.Request{Key: r.URL.Path}, true
	}}
	server := httptest.NewServer(locks.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := put(r.Context(), client, store.URL+r.URL.Path) // ends if the lock is lost
		_, _ = fmt.Fprintln(w, status, err)
	})))
	defer server.Close()

	response, err := http.Post(server.URL+"/orders/42", "text/plain", nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	fmt.Print("the store answers: ", string(text))

	late := mortise.ContextWithToken(ctx, 5) // the token of a handler that was paused, and has lost its lock
	fmt.Println(put(late, client, store.URL+"/orders/42"))
	// Output:
	// the store answers: 200 OK <nil>
	// 412 Precondition Failed <nil>
}

// Any instance receives an alert, and the leader sends it.
func Example_toLeader() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	toLeader := httpleader.ToLeader{Node: node, Key: func(*http.Request) string { return "alerts" }}
	server := httptest.NewServer(toLeader.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := mortise.TokenFrom(r.Context()) // of the leader
		_, _ = fmt.Fprintln(w, "sent by the leader, under a token:", token > 0)
	})))
	defer server.Close()

	// Each candidate gives the address of its own server.
	e := election.New(node, "alerts", election.Options{})
	leadership, err := e.Campaign(ctx, server.URL)
	if err != nil {
		panic(err)
	}
	defer func() { _ = leadership.Resign(ctx) }()

	response, err := http.Post(server.URL+"/alert", "text/plain", nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	fmt.Print(response.Status, ": ", string(text), err, "\n")
	// Output:
	// 200 OK: sent by the leader, under a token: true
	// <nil>
}

func put(ctx context.Context, client *http.Client, url string) (status string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	return response.Status, response.Body.Close()
}
