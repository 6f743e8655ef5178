package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestProbesFollowTheNode(t *testing.T) {
	t.Parallel()
	node := solo(t)
	h := New(node, Options{})
	want := func(path string, code int, text string) {
		t.Helper()
		answer, body, _ := get(t, h, path)
		if answer.StatusCode != code || !strings.Contains(body, text) || strings.Count(body, "\n") != 1 {
			t.Errorf("%s says %s: %q; want %d and %q in one line", path, answer.Status, body, code, text)
		}
		if got := answer.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
	}
	want("/livez", 200, "alive")
	want("/readyz", 200, "ready")
	held := lock(t, node, mortise.Request{Key: "k"})
	left := make(chan error, 1)
	go func() { left <- node.Leave(context.Background()) }()
	<-held.Context(t.Context()).Done() // closed when the node leaves; the node then waits for the holder
	want("/livez", 200, "alive")
	want("/readyz", 503, "leaving")
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	want("/livez", 503, "closed")
	want("/readyz", 503, "closed")
	_, page, _ := get(t, h, "/")
	wantText(t, page, "This node has ended", "Restart the process")
}

// The instance cannot found the group without the other founders. A restart would not help, so
// /livez must succeed.
func TestANodeThatIsAloneTooEarlyIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	node, err := mortise.Start(t.Context(), mortise.Config{
		Name: "first", Bind: "127.0.0.1:0", Join: []string{"127.0.0.1:1"}, Replicas: 3,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	h := New(node, Options{})
	if answer, body, _ := get(t, h, "/livez"); answer.StatusCode != http.StatusOK {
		t.Errorf("/livez says %s: %s", answer.Status, body)
	}
	eventually(t, "readyz says for what it waits", func() bool {
		answer, body, took := get(t, h, "/readyz")
		if answer.StatusCode != http.StatusServiceUnavailable || took > 5*readyWithin {
			t.Fatalf("/readyz says %s after %v: %s", answer.Status, took, body)
		}
		if strings.Contains(body, "deadline") {
			t.Fatalf("it says how the question ended, not what is waited for: %s", body)
		}
		return strings.Contains(body, "Replicas: 3")
	})
	eventually(t, "the page says so too", func() bool {
		what, _, ok := status(t, h, "").found("no-group")
		return ok && strings.Contains(what, "Replicas: 3")
	})
}

func TestReadyzNamesTheSecret(t *testing.T) {
	t.Parallel()
	join := func(name, secret string, replicas int, join ...string) *mortise.Node {
		node, err := mortise.Start(t.Context(), mortise.Config{
			Name: name, Bind: "127.0.0.1:0", Replicas: replicas, Secret: secret, Logger: slog.New(slog.DiscardHandler),
			JoinFunc: func(context.Context) ([]string, error) { return join, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close() })
		return node
	}
	const secret, other = "8f1b6d0ce94a2753be60f7a1d3c8952e4b7f09a6c1d2e3540987ab6cdef31275",
		"1d2e3540987ab6cdef312758f1b6d0ce94a2753be60f7a1d3c8952e4b7f09a6c"
	first := join("first", secret, 1)
	ready(t, first)
	for name, c := range map[string]struct{ secret, want string }{
		"another": {other, `(the other side has another secret ("mortise authority `},
		"none": {"", " cannot be asked: the other side has a secret (or Config.TLS), and this one has none: set the " +
			"same Config.Secret (or Config.TLS) here, and not Config.Insecure\n"},
	} {
		h := New(join("second", c.secret, 2, first.Status().Address), Options{})
		eventually(t, name+": readyz names the secret", func() bool {
			answer, body, _ := get(t, h, "/readyz")
			return answer.StatusCode == http.StatusServiceUnavailable &&
				strings.HasPrefix(body, "not ready: founding waits: ") && strings.Contains(body, c.want)
		})
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.StripPrefix("/ops/mortise", New(solo(t), Options{})))
	defer server.Close()
	client := &http.Client{Timeout: time.Minute}
	ask := func(method, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/ops/mortise"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	for _, path := range []string{"/", "", "/status.json", "/livez", "/readyz"} {
		got, head := ask("GET", path), ask("HEAD", path)
		if got.StatusCode != 200 || head.StatusCode != 200 ||
			head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
			t.Errorf("%q: GET %s, HEAD %s", path, got.Status, head.Status)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "G", "OPTIONS"} {
			if refused := ask(method, path); refused.StatusCode != http.StatusMethodNotAllowed ||
				refused.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %q: %s, Allow %q", method, path, refused.Status, refused.Header.Get("Allow"))
			}
		}
	}
	if other := ask("GET", "/other"); other.StatusCode != http.StatusNotFound {
		t.Errorf("/other: %s", other.Status)
	}
}
