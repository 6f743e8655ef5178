package mortiseserver_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/httplock"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, serve) }

// serve runs in a process of its own. A request makes its handler send a request to the store.
func serve(_ context.Context, node *mortise.Node) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(node.Status().Name, "node-")
	if err := os.WriteFile(filepath.Join(os.Getenv("DIR"), number), []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	client := &http.Client{Transport: &fence.Transport{Require: true}}
	locks := httplock.Middleware{Node: node, Request: func(r *http.Request) (mortise.Request, bool) {
		return mortise.Request{Key: r.URL.Path}, true
	}}
	go http.Serve(listener, locks.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		put, err := http.NewRequestWithContext(r.Context(), http.MethodPut, os.Getenv("STORE")+"/"+number, nil)
		if err == nil {
			var response *http.Response
			if response, err = client.Do(put); err == nil {
				defer response.Body.Close()
				w.WriteHeader(response.StatusCode)
				return
			}
		}
		http.Error(w, err.Error(), http.StatusBadGateway)
	})))
	fmt.Println("serves")
	return nil
}

// store notes the tokens of writes. It holds the first one until it is released.
type store struct {
	mu      sync.Mutex
	tokens  []mortise.Token
	by      []string
	arrived chan string
	release chan bool
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := mortise.TokenFrom(r.Context())
	number := strings.TrimPrefix(r.URL.Path, "/")
	s.mu.Lock()
	s.tokens, s.by = append(s.tokens, token), append(s.by, number)
	first := len(s.tokens) == 1
	s.mu.Unlock()
	if first {
		s.arrived <- number
		<-s.release
	}
	w.WriteHeader(http.StatusNoContent)
}

// The process that handles a request is killed. A request for the same key, at another process, is
// handled when the session of the killed one has expired, with a higher token. The store then
// refuses the token of the killed one.
func TestAProcessIsKilledInItsHandler(t *testing.T) {
	s, mark := &store{arrived: make(chan string, 1), release: make(chan bool)}, &fence.Mark{}
	guard := fence.Guard{Store: advanceOnly{mark}, Resource: func(*http.Request) string { return "a" }}
	server := httptest.NewServer(guard.Wrap(s))
	defer server.Close()
	defer close(s.release) // before server.Close, which waits for the handler
	dir := t.TempDir()
	f := trio.Start(t, "DIR="+dir, "STORE="+server.URL)
	f.Await(3, "serves")
	send := func(process int) (*http.Response, error) {
		address, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(process)))
		if err != nil {
			t.Error(err)
		}
		return http.Post("http://"+string(address)+"/a", "text/plain", nil)
	}
	cut := make(chan error, 1)
	go func() {
		response, err := send(0)
		if err == nil {
			response.Body.Close()
		}
		cut <- err
	}()
	if by := <-s.arrived; by != "0" {
		t.Fatalf("written by process %s", by)
	}
	f.Kill(0)
	if err := <-cut; err == nil {
		t.Error("the killed process has answered")
	}
	response, err := send(1)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if response.StatusCode != http.StatusNoContent || len(s.tokens) != 2 || s.by[1] != "1" || s.tokens[1] <= s.tokens[0] {
		t.Errorf("%s, tokens %v, by %v", response.Status, s.tokens, s.by)
	}
	late, err := http.NewRequestWithContext(mortise.ContextWithToken(t.Context(), s.tokens[0]), http.MethodPut,
		server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err = (&http.Client{Transport: &fence.Transport{}}).Do(late)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("a late write: %s", response.Status)
	}
}

// advanceOnly hides the Do of a Mark, so that a writer does not wait for an earlier one.
type advanceOnly struct{ mark *fence.Mark }

func (a advanceOnly) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return a.mark.Advance(ctx, resource, token)
}
