package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// startFleet starts instances on the loopback interface, alternately in two zones, and waits until
// all are ready. They are closed at the end of the test.
func startFleet(t *testing.T, names ...string) []*mortise.Node {
	t.Helper()
	return startFleetOf(t, func(*mortise.Config) {}, names...)
}

func startFleetOf(t *testing.T, change func(*mortise.Config), names ...string) []*mortise.Node {
	t.Helper()
	var mu sync.Mutex
	var addresses []string
	var nodes []*mortise.Node
	for i, name := range names {
		config := mortise.Config{
			Name: name, Bind: "127.0.0.1:0", Replicas: len(names), Zone: []string{"eu-1a", "eu-1b"}[i%2], Grace: -1,
			JoinFunc: func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(addresses), nil
			},
			Logger: slog.New(slog.DiscardHandler),
		}
		change(&config)
		node, err := mortise.Start(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close() })
		mu.Lock()
		addresses = append(addresses, node.Status().Address)
		mu.Unlock()
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		ready(t, node)
	}
	return nodes
}

func solo(t *testing.T) *mortise.Node {
	t.Helper()
	node, err := mortise.Start(t.Context(), mortise.Config{Name: "solo", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	ready(t, node)
	return node
}

func ready(t *testing.T, node *mortise.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := node.Ready(ctx); err != nil {
		t.Fatalf("%v\n%v", err, node.Status())
	}
}

func lock(t *testing.T, node *mortise.Node, r mortise.Request) *mortise.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := node.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wait starts calls that wait for a key until the test ends. It returns when all of them are in the
// leader's queue.
func wait(t *testing.T, node *mortise.Node, key string, calls int) {
	t.Helper()
	before, err := node.Peek(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if l, err := node.Lock(ctx, key); err == nil {
				_ = l.Unlock(ctx)
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	eventually(t, fmt.Sprintf("%d wait for %s", calls, key), func() bool {
		info, err := node.Peek(t.Context(), key)
		return err == nil && info.Waiting == before.Waiting+calls
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute it is still not so that %s", what)
		}
	}
}

// get returns the response of a handler, its body, and how long the handler took.
func get(t *testing.T, h http.Handler, path string) (*http.Response, string, time.Duration) {
	t.Helper()
	begun := time.Now()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.0.0.9"+path, nil))
	answer := w.Result()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body), time.Since(begun)
}

type picture struct {
	Level    string
	Findings []struct {
		ID, Level, What, Why, Next string
		About                      []struct{ Key, Text string }
	}
	Instance struct{ Name, Session, Lease string }
	Group    struct{ Leader string }
	Zones    []struct {
		Zone    string
		Members []struct {
			Name, Role string
			Missing    bool
		}
	}
	Members struct {
		Shown, Total int
		After, Next  string
		Old          bool
		Age          float64 `json:"age_seconds"`
	}
	Locks, Search struct {
		Keys []struct {
			Key     string
			Held    int
			Waiting int
			Queue   []struct{ Holder, Token string }
		}
		More  bool
		Error string
	}
	Ends []struct {
		Key, Holder, What, Cause, By, Reason string
	} `json:"abnormal_ends"`
	Circles [][]struct {
		Holder, Holds string
		WaitsFor      string `json:"waits_for"`
	}
}

func status(t *testing.T, h http.Handler, query string) (p picture) {
	t.Helper()
	answer, body, _ := get(t, h, "/status.json"+query)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, body)
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p picture) found(id string) (what, next string, ok bool) {
	for _, f := range p.Findings {
		if strings.HasPrefix(f.ID, id) {
			f.What += " " + f.Why
			for _, a := range f.About {
				f.What += " " + a.Key + " " + a.Text
			}
			return f.What, f.Next, true
		}
	}
	return "", "", false
}

func (p picture) missing(name string) bool {
	for _, z := range p.Zones {
		for _, m := range z.Members {
			if m.Name == name && m.Missing {
				return true
			}
		}
	}
	return false
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			if _, main, page := strings.Cut(text, "<main"); page {
				text = main[:strings.Index(main, "<footer")]
			}
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}
