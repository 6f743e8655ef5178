package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/mortise-lock/mortise"
)

// resource is what the lock protects: a number that is accessed by HTTP. It remembers the highest
// fencing token that it has received and refuses writes with a lower token.
type resource struct {
	server *http.Server
	listen net.Listener

	mu      sync.Mutex // guards the fields below
	value   int
	highest uint64
	turns   map[string]int // the number of accepted writes by worker
	refused int
}

func startResource() (*resource, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &resource{listen: l, turns: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /number", func(w http.ResponseWriter, _ *http.Request) { say(w, "%d", r.number()) })
	mux.HandleFunc("PUT /number", r.put)
	r.server = &http.Server{Handler: mux}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *resource) put(w http.ResponseWriter, q *http.Request) {
	token, err := strconv.ParseUint(q.Header.Get("Token"), 10, 64)
	body, readErr := io.ReadAll(io.LimitReader(q.Body, 32))
	value, atoiErr := strconv.Atoi(string(body))
	if err != nil || readErr != nil || atoiErr != nil {
		http.Error(w, "want a number as the body and the fencing token in the header Token", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.highest {
		r.refused++
		http.Error(w, fmt.Sprintf("token %d is older than %d", token, r.highest), http.StatusConflict)
		return
	}
	r.highest, r.value = token, value
	r.turns[q.Header.Get("Worker")]++
}

func (r *resource) number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// tally returns the stored number, the accepted writes by worker, and how many writes were refused
// because of a low token.
func (r *resource) tally() (number int, turns map[string]int, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, maps.Clone(r.turns), r.refused
}

func (r *resource) url() string { return "http://" + r.listen.Addr().String() + "/number" }

func (r *resource) close() { _ = r.server.Close() }

// The functions below are called by the workers.
func read(ctx context.Context, url string) (int, error) {
	body, err := call(ctx, http.MethodGet, url, "", nil)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(body)
}

func write(ctx context.Context, url, worker string, token mortise.Token, number int) error {
	header := http.Header{"Worker": {worker}, "Token": {strconv.FormatUint(uint64(token), 10)}}
	_, err := call(ctx, http.MethodPut, url, strconv.Itoa(number), header)
	return err
}

func call(ctx context.Context, method, url, body string, header http.Header) (string, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for name, values := range header {
		q.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the resource refused: %s", strings.TrimSpace(string(text)))
	}
	return string(text), err
}
