package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// seen returns a handler that answers with the token of its context and counts its calls.
func seen(calls *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		token, ok := mortise.TokenFrom(r.Context())
		fmt.Fprint(w, uint64(token), ok)
	})
}

type brokenStore struct{}

func (brokenStore) Advance(context.Context, string, mortise.Token) error {
	return errors.New("the password of the database is wrong")
}

func TestGuardAnswers(t *testing.T) {
	byPath := func(r *http.Request) string { return r.URL.Path }
	h := func(pairs ...string) http.Header {
		header := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			header.Add(pairs[i], pairs[i+1])
		}
		return header
	}
	const token, resource = fence.TokenHeader, fence.ResourceHeader
	for _, c := range []struct {
		name   string
		guard  fence.Guard
		header http.Header
		status int
		text   string
	}{
		{"the mark", fence.Guard{Resource: byPath}, h(token, "5"), 200, "5 true"},
		{"higher", fence.Guard{Resource: byPath}, h(token, "6"), 200, "6 true"},
		{"stale", fence.Guard{Resource: byPath}, h(token, "4"), 412, `token 4 of "/orders/42" is older than 5`},
		{"absent", fence.Guard{Resource: byPath}, h(), 428, "Mortise-Token"},
		{"absent, optional", fence.Guard{Resource: byPath, Optional: true}, h(), 200, "0 false"},
		{"stale, optional", fence.Guard{Resource: byPath, Optional: true}, h(token, "4"), 412, "older"},
		{"malformed, optional", fence.Guard{Resource: byPath, Optional: true}, h(token, ""), 400, "not a token"},
		{"negative", fence.Guard{Resource: byPath}, h(token, "-5"), 400, "not a token"},
		{"zero", fence.Guard{Resource: byPath}, h(token, "0"), 400, "not a token"},
		{"overflow", fence.Guard{Resource: byPath}, h(token, "9223372036854775808"), 400, "not a token"},
		{"wraps to 6", fence.Guard{Resource: byPath}, h(token, "18446744073709551622"), 400, "not a token"},
		{"huge", fence.Guard{Resource: byPath}, h(token, strings.Repeat("7", 100_000)), 400, "not a token"},
		{"two headers", fence.Guard{Resource: byPath}, h(token, "5", token, "6"), 400, "2 headers"},
		{"two in one", fence.Guard{Resource: byPath}, h(token, "5, 6"), 400, "not a token"},
		{"script", fence.Guard{Resource: byPath}, h(token, "<script>"), 400, "not a token"},
		{"named", fence.Guard{}, h(token, "4", resource, "b"), 200, "4 true"},
		{"named and stale", fence.Guard{}, h(token, "4", resource, "%2Forders%2F42"), 412, "older"},
		{"not named", fence.Guard{}, h(token, "5"), 400, "Mortise-Resource"},
		{"named twice", fence.Guard{}, h(token, "5", resource, "b", resource, "c"), 400, "Mortise-Resource"},
		{"named badly", fence.Guard{}, h(token, "5", resource, "%zz"), 400, `not a resource: invalid URL escape "%zz"`},
		{"named with a line feed", fence.Guard{}, h(token, "5", resource, "a%0Ab"), 400, "not a resource"},
		{"named at length", fence.Guard{}, h(token, "5", resource, strings.Repeat("x", 513)), 400, "not a resource"},
		{"named at great length", fence.Guard{}, h(token, "5", resource, strings.Repeat("%41", 50_000)), 400,
			"not a resource"},
		{"the path counts", fence.Guard{Resource: byPath}, h(token, "4", resource, "b"), 412, "/orders/42"},
		{"broken store", fence.Guard{Resource: byPath, Store: brokenStore{}}, h(token, "5"), 503,
			"could not be compared"},
	} {
		mark := &fence.Mark{}
		_ = mark.Advance(t.Context(), "/orders/42", 5)
		failed := ""
		c.guard.Failed = func(_ *http.Request, err error) { failed = err.Error() }
		if c.guard.Store == nil {
			c.guard.Store = mark
		}
		var calls atomic.Int64
		r := httptest.NewRequest("PUT", "/orders/42", nil)
		r.Header = c.header
		w := httptest.NewRecorder()
		c.guard.Wrap(seen(&calls)).ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || w.Body.Len() > 300 {
			t.Errorf("%s: %d %.300q, want %d with %q", c.name, w.Code, w.Body, c.status, c.text)
		}
		for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			if got := w.Header().Get(name); c.status != 200 && got != want {
				t.Errorf("%s: %s is %q", c.name, name, got)
			}
		}
		if (calls.Load() == 1) != (c.status == 200) {
			t.Errorf("%s: the handler ran %d times", c.name, calls.Load())
		}
		if (failed != "") != (c.status == 503) || strings.Contains(w.Body.String(), "password") {
			t.Errorf("%s: Failed was told %q, the client %q", c.name, failed, w.Body)
		}
		if c.status == 400 || c.status == 428 {
			if top, _ := mark.Highest("/orders/42"); top != 5 {
				t.Errorf("%s: the mark has moved to %d", c.name, top)
			}
		}
	}
}

func TestTransportMeetsGuard(t *testing.T) {
	var calls atomic.Int64
	mark := &fence.Mark{}
	server := httptest.NewServer(fence.Guard{Store: mark}.Wrap(seen(&calls)))
	defer server.Close()
	client := &http.Client{Transport: &fence.Transport{
		Resource: func(*http.Request) string { return " ordérs/42%\t"[:11] }, Require: true,
	}}
	send := func(ctx context.Context) (*http.Response, string, error) {
		r, err := http.NewRequestWithContext(ctx, "PUT", server.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(fence.TokenHeader, "99")
		response, err := client.Do(r)
		if err != nil {
			return nil, "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if r.Header.Get(fence.TokenHeader) != "99" {
			t.Error("the transport has changed the request that it was given")
		}
		return response, string(text), err
	}
	if _, _, err := send(t.Context()); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("without a token: %v", err)
	}
	for _, token := range []mortise.Token{5, 6} {
		response, text, err := send(mortise.ContextWithToken(t.Context(), token))
		if err != nil || text != fmt.Sprint(uint64(token), true) || fence.ResponseError(response) != nil {
			t.Errorf("token %d: %q, %v", token, text, err)
		}
	}
	response, _, err := send(mortise.ContextWithToken(t.Context(), 5))
	if err != nil {
		t.Fatal(err)
	}
	var stale *fence.StaleError
	if !errors.As(fence.ResponseError(response), &stale) ||
		*stale != (fence.StaleError{Resource: " ordérs/42", Token: 5, Highest: 6}) {
		t.Errorf("the refusal comes back as %+v", stale)
	}
	if calls.Load() != 2 {
		t.Errorf("the handler ran %d times, want 2", calls.Load())
	}
}

type recorder struct{ sent *http.Request }

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	r.sent = q
	return &http.Response{StatusCode: 412, Header: http.Header{}}, nil
}

func TestTransportWithoutAToken(t *testing.T) {
	base := &recorder{}
	r := httptest.NewRequest("GET", "/", nil)
	response, err := (&fence.Transport{Base: base}).RoundTrip(r)
	if err != nil || base.sent.Header.Get(fence.TokenHeader) != "" {
		t.Errorf("%v, sent %v", err, base.sent.Header)
	}
	if err := fence.ResponseError(response); err != nil {
		t.Errorf("a 412 of another server was taken for a refusal: %v", err)
	}
	body := &closer{Reader: strings.NewReader("x")}
	r = httptest.NewRequest("PUT", "/", body)
	if _, err := (&fence.Transport{Base: base, Require: true}).RoundTrip(r); !errors.Is(err, fence.ErrNoToken) ||
		!body.closed {
		t.Errorf("%v, body closed: %v", err, body.closed)
	}
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error { c.closed = true; return nil }

// A handler that was admitted and then stopped cannot write after the handler of a newer request.
// The newer request ends the context of the older handler and waits for it.
func TestGuardKeepsHandlersApart(t *testing.T) {
	register := "" // written without a lock, so that the race detector checks the order of the writes
	arrived := make(chan bool)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, _ := mortise.TokenFrom(r.Context()); token == 5 {
			close(arrived)
			<-r.Context().Done()
			if !errors.Is(context.Cause(r.Context()), fence.ErrStale) {
				t.Error(context.Cause(r.Context()))
			}
			register = "old"
			return
		}
		register = "new"
	})
	server := httptest.NewServer(fence.Guard{Store: &fence.Mark{},
		Resource: func(*http.Request) string { return "a" }}.Wrap(slow))
	client := &http.Client{Transport: &fence.Transport{}}
	send := func(token mortise.Token) {
		r, _ := http.NewRequestWithContext(mortise.ContextWithToken(t.Context(), token), "PUT", server.URL, nil)
		response, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		response.Body.Close()
	}
	done := make(chan bool)
	go func() { send(5); close(done) }()
	<-arrived
	send(6)
	<-done
	server.Close()
	if register != "new" {
		t.Errorf("the register says %q after the new holder has written", register)
	}
}

// TestGuardSurvivesRawRequests sends malformed headers that no HTTP client library would send.
func TestGuardSurvivesRawRequests(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(fence.Guard{Store: &fence.Mark{}}.Wrap(seen(&calls)))
	defer server.Close()
	for _, headers := range []string{
		"Mortise-Token: 5\r\nMORTISE-TOKEN: 6\r\nMortise-Resource: a\r\n",
		"Mortise-Token: \xff\xfe\r\nMortise-Resource: a\r\n",
		"Mortise-Token: 5\r\nMortise-Resource: \xff\r\n",
		"Mortise-Token: 5\r\nMortise-Resource: " + strings.Repeat("a", 200_000) + "\r\n",
		"Mortise-Token: " + strings.Repeat("0", 200_000) + "5\r\nMortise-Resource: a\r\n",
		"Mortise-Token: " + strings.Repeat("9", 2<<20) + "\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", headers)
		// The server may reset the connection before it has read everything.
		answer, _ := io.ReadAll(io.LimitReader(conn, 4096))
		conn.Close()
		if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%.60q: %.60q", headers, answer)
		}
	}
	if calls.Load() != 0 {
		t.Errorf("the handler ran %d times", calls.Load())
	}
}
