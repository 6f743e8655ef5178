package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// The requests come from a page of another site whose name resolves to this address. To a browser,
// that page has the same origin as the console. If the handler accepted these requests, and
// MayForce checked only addresses, such a page could end holds.
func TestDNSRebinding(t *testing.T) {
	node := solo(t)
	held := lock(t, node, mortise.Request{Key: "k"})
	// httptest sets this remote address. It stands for an address in an internal network.
	mine := func(r *http.Request) bool { return strings.HasPrefix(r.RemoteAddr, "192.0.2.") }
	h := New(node, Options{MayForce: mine, Hosts: []string{"Locks.example"}})
	form := neturl.Values{"key": {"k"}, "token": {fmt.Sprint(uint64(held.Token()))}, "reason": {"rebound"}}.Encode()
	ask := func(method, host, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+path, strings.NewReader(body))
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example",
		"localhost.evil.example", "xlocks.example", "locks.example.evil.example"} {
		w := ask(http.MethodPost, host, "/", form)
		name, _, _ := strings.Cut(host, ":")
		if text := w.Body.String(); w.Code != http.StatusForbidden ||
			!strings.Contains(text, `"`+name+`" to Hosts of console.Options`) {
			t.Errorf("POST by %s: %d, %s", host, w.Code, text)
		}
		for _, path := range []string{"/", "/status.json", "/none"} {
			if w := ask(http.MethodGet, host, path, ""); w.Code != http.StatusForbidden ||
				strings.Contains(w.Body.String(), "token") {
				t.Errorf("GET %s by %s: %d", path, host, w.Code)
			}
		}
		if w := ask(http.MethodGet, host, "/livez", ""); w.Code != http.StatusOK {
			t.Errorf("a probe by %s: %d", host, w.Code)
		}
	}
	if err := held.Err(); err != nil {
		t.Fatalf("a page of another site has ended the hold: %v", err)
	}
	for _, host := range []string{"127.0.0.1", "10.1.2.3:8080", "[::1]:80", "localhost:8080", "locks.example",
		"LOCKS.EXAMPLE.:443"} {
		if w := ask(http.MethodGet, host, "/", ""); w.Code != http.StatusOK {
			t.Errorf("GET by %s: %d %s", host, w.Code, w.Body)
		}
	}
	if w := ask(http.MethodPost, "locks.example", "/", form); w.Code != http.StatusOK {
		t.Errorf("by its own name: %d, %s", w.Code, w.Body)
	} else {
		<-held.Done() // the holder hears of it a little later
	}
	if w := httptest.NewRecorder(); true {
		New(node, Options{Hosts: []string{"*"}}).ServeHTTP(w,
			httptest.NewRequest(http.MethodGet, "http://any.example/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("with *: %d", w.Code)
		}
	}
}

// The reason that a probe gives contains names and addresses of instances.
func TestAProbeByAnotherNameIsToldNoReason(t *testing.T) {
	node := solo(t)
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"evil.example": "the node has ended\n",
		"127.0.0.1": "the node has ended: mortise:"} {
		w := httptest.NewRecorder()
		New(node, Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+host+"/livez", nil))
		if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s: %d %q", host, w.Code, w.Body)
		}
	}
}

func TestNoAnswerMayBeFramed(t *testing.T) {
	node := solo(t)
	h := New(node, Options{MayForce: func(*http.Request) bool { return false }})
	for _, c := range []struct{ method, url string }{
		{"GET", "http://127.0.0.1/"}, {"POST", "http://127.0.0.1/"}, {"GET", "http://127.0.0.1/status.json"},
		{"GET", "http://127.0.0.1/livez"}, {"HEAD", "http://127.0.0.1/readyz"},
		{"GET", "http://127.0.0.1/none"}, {"PUT", "http://127.0.0.1/"}, {"GET", "http://evil.example/"},
		{"GET", "http://evil.example/livez"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.url, nil))
		if w.Header().Get("X-Frame-Options") != "DENY" || !strings.Contains(w.Header().Get("Content-Security-Policy"),
			"frame-ancestors 'none'") {
			t.Errorf("%s %s: %v", c.method, c.url, w.Header())
		}
	}
}
