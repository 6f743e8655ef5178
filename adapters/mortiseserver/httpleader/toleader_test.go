package httpleader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/mortisetest"
)

// post sends a request and returns the answer with its body.
func post(t *testing.T, url string, body io.Reader, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// instance is a candidate with a server.
type instance struct {
	url     string
	resign  context.CancelFunc
	stopped chan bool
}

// startInstance starts a candidate on a node. Its handler describes the request.
func startInstance(t *testing.T, node *mortise.Node) *instance {
	i := &instance{stopped: make(chan bool)}
	toLeader := ToLeader{Node: node, Key: func(*http.Request) string { return "billing" }}
	server := httptest.NewServer(toLeader.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			t.Error(err)
		}
		token, _ := mortise.TokenFrom(r.Context())
		fmt.Fprintf(w, "%s %d %s %s %s %x", node.Status().Name, token, r.Method, r.URL, r.Host, sum.Sum(nil))
	})))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	i.url, i.resign = server.URL, cancel
	go func() {
		defer close(i.stopped)
		err := election.New(node, "billing", election.Options{}).Run(ctx, strings.TrimPrefix(server.URL, "http://"),
			func(ctx context.Context, _ *election.Leadership) error { <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.Canceled) && !errors.Is(err, mortise.ErrClosed) && !errors.Is(err, mortise.ErrLeaving) {
			t.Error("the candidate ended with", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-i.stopped })
	return i
}

// Every instance passes each request to the leader, also after the lead has moved, and after the
// leader has died.
func TestEachInstanceReachesTheLeader(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	var all []*instance
	for i := range 3 {
		all = append(all, startInstance(t, cluster.Node(i)))
		cluster.Until("the candidacy", func() bool {
			info, err := cluster.Node(0).Peek(t.Context(), "billing")
			return err == nil && info.Held+info.Waiting == i+1
		})
	}
	body := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body)
	sum := sha256.Sum256(body)
	last := mortise.Token(0)
	check := func(leader int, alive ...int) {
		t.Helper()
		info := cluster.AwaitHolder("billing", leader)
		token := info.Queue[0].Token
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
		for _, i := range alive {
			response, text := post(t, all[i].url+"/bills?a=1;b&c=2", bytes.NewReader(body), nil)
			want := fmt.Sprintf("%s %d POST /bills?a=1;b&c=2 %s %x", info.Queue[0].Holder, token,
				strings.TrimPrefix(all[i].url, "http://"), sum)
			if response.StatusCode != http.StatusOK || text != want {
				t.Errorf("at instance %d: %s %q, want %q", i, response.Status, text, want)
			}
		}
	}
	check(0, 0, 1, 2)
	all[0].resign()
	<-all[0].stopped
	check(1, 0, 1, 2)
	cluster.Kill(1)
	check(2, 0, 2)
}

// fake is a Node whose answers the test sets.
type fake struct {
	mu       sync.Mutex
	queue    []mortise.Standing
	err      error
	sessions []string
	blocks   bool
}

func (f *fake) Peek(ctx context.Context, key string) (mortise.KeyInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocks {
		<-ctx.Done()
		return mortise.KeyInfo{}, ctx.Err()
	}
	return mortise.KeyInfo{Key: key, Queue: f.queue}, f.err
}

func (f *fake) Status() mortise.Status { return mortise.Status{Sessions: f.sessions} }

// led returns a node that sees the session s as the leader, with a value.
func led(s, value string) *fake {
	return &fake{sessions: []string{"mine", "also mine"}, queue: []mortise.Standing{{
		Hold: mortise.Hold{Session: s, Token: 7, Value: value}}}}
}

// rig is a server with a ToLeader before a handler.
type rig struct {
	*httptest.Server
	mu     sync.Mutex
	failed []error
}

func newRig(t *testing.T, l ToLeader, next http.HandlerFunc) *rig {
	r := &rig{}
	if l.Key == nil {
		l.Key = func(*http.Request) string { return "k" }
	}
	l.Failed = func(_ *http.Request, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = append(r.failed, err)
	}
	r.Server = httptest.NewServer(l.Wrap(next))
	t.Cleanup(r.Close)
	return r
}

func never(t *testing.T) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }
}

// expect checks an answer that is not the handler's, and the last reason.
func (r *rig) expect(t *testing.T, what string, response *http.Response, text string, status int, reason string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	retry := status == http.StatusServiceUnavailable
	if response.StatusCode != status || (response.Header.Get("Retry-After") != "") != retry ||
		!strings.HasPrefix(text, "httpleader: ") || response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: %s %v %q, want %d", what, response.Status, response.Header, text, status)
	}
	if len(r.failed) == 0 {
		t.Errorf("%s: Failed was not called", what)
	} else if got := r.failed[len(r.failed)-1].Error(); !strings.HasPrefix(got, `httpleader: "k": `) ||
		!strings.Contains(got, reason) || strings.Contains(text, reason) {
		t.Errorf("%s: the reason is %q, want %q", what, got, reason)
	}
}

func TestAnswersWithoutALeader(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, row := range map[string]struct {
		node   *fake
		status int
		reason string
	}{
		"none":        {&fake{}, 503, "no instance holds it"},
		"a grace":     {&fake{queue: []mortise.Standing{{Hold: mortise.Hold{Session: "mine"}}}}, 503, "no instance holds it"},
		"an error":    {&fake{err: mortise.ErrOverloaded}, 503, mortise.ErrOverloaded.Error()},
		"no majority": {&fake{blocks: true}, 503, context.DeadlineExceeded.Error()},
		"no server":   {led("other", closed.URL), 503, "refused"},
		"no value":    {led("other", ""), 502, "no host and port"},
		"a name":      {led("other", "a b"), 502, "no host and port"},
		"a file":      {led("other", "file:///etc/passwd"), 502, "no host and port"},
		"ftp":         {led("other", "ftp://127.0.0.1:1"), 502, "no host and port"},
	} {
		r := newRig(t, ToLeader{Node: row.node, Within: 50 * time.Millisecond}, never(t))
		response, text := post(t, r.URL, nil, nil)
		r.expect(t, name, response, text, row.status, row.reason)
	}
}

// The defaults: a leader is sought for 2 s, and 100 requests are on their way to it.
func TestDefaults(t *testing.T) {
	f := &forwarder{forwards: map[string]int{}}
	for f.begin("a") {
	}
	if n := f.forwards["a"]; n != 100 {
		t.Errorf("%d requests are forwarded at a time, want 100", n)
	}
	for _, within := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			f.ToLeader = ToLeader{Node: &fake{blocks: true}, Within: within}
			began := time.Now()
			_, err := f.leader(t.Context(), "k")
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for after, want := range map[time.Duration]string{
		0: "1", -5 * time.Second: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2",
		time.Minute: "60",
	} {
		r := newRig(t, ToLeader{Node: &fake{}, RetryAfter: after}, never(t))
		if response, _ := post(t, r.URL, nil, nil); response.Header.Get("Retry-After") != want {
			t.Errorf("RetryAfter %v: %q, want %s", after, response.Header.Get("Retry-After"), want)
		}
	}
}

// The leader handles what it receives, also what another instance has forwarded, and each instance
// handles a request without a key.
func TestHandledHere(t *testing.T) {
	for name, row := range map[string]struct {
		node  *fake
		key   string
		token mortise.Token
	}{
		"the leader":      {led("also mine", "http://unused.invalid"), "k", 7},
		"without a key":   {&fake{err: errors.New("not asked")}, "", 0},
		"no value needed": {led("mine", ""), "k", 7},
	} {
		for _, header := range []http.Header{nil, {Header: {"5"}}} {
			r := newRig(t, ToLeader{Node: row.node, Key: func(*http.Request) string { return row.key }},
				func(w http.ResponseWriter, r *http.Request) {
					token, _ := mortise.TokenFrom(r.Context())
					fmt.Fprint(w, token)
				})
			response, text := post(t, r.URL, nil, header)
			if response.StatusCode != http.StatusOK || text != fmt.Sprint(row.token) {
				t.Errorf("%s, %v: %s, token %s, want %d", name, header, response.Status, text, row.token)
			}
		}
	}
}

// A request is sent once, even between two instances that each believe that the other one leads.
func TestAForwardedRequestIsNotForwardedAgain(t *testing.T) {
	a, b := led("other", ""), led("other", "")
	first := newRig(t, ToLeader{Node: a}, never(t))
	second := newRig(t, ToLeader{Node: b}, never(t))
	a.queue[0].Value, b.queue[0].Value = second.URL, first.URL
	response, text := post(t, first.URL, strings.NewReader("body"), nil)
	second.expect(t, "a circle", response, text, http.StatusServiceUnavailable, "forwarded to this instance")
	if len(first.failed) != 0 || len(second.failed) != 1 {
		t.Errorf("failed: %v and %v", first.failed, second.failed)
	}
}

// The leader sees the headers of the client and of the proxies before this instance, and none that
// are for one connection.
func TestHeadersOfAForwardedRequest(t *testing.T) {
	got := make(chan http.Header, 1)
	leader := newRig(t, ToLeader{Node: led("mine", "")}, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	r := newRig(t, ToLeader{Node: led("other", leader.URL)}, never(t))
	post(t, r.URL, nil, http.Header{"Connection": {"X-Hop"}, "X-Hop": {"1"}, "Te": {"gzip"}, "X-Mine": {"a", "b"},
		"X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop"},
		"Mortise-Token": {"9"}})
	h := <-got
	for name, want := range map[string]string{"X-Mine": "a b", "X-Forwarded-For": "192.0.2.1, 127.0.0.1",
		"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop", "Mortise-Token": "9", Header: "7",
		"X-Hop": "", "Te": "", "Connection": ""} {
		if text := strings.Join(h[name], " "); text != want {
			t.Errorf("%s: %q, want %q", name, text, want)
		}
	}
}

// Parts of a body and of an answer arrive while the other end still writes. If the client goes, the
// handler's context ends.
func TestStreamsAndCancellation(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arrived, received, ended := make(chan bool), make(chan bool), make(chan bool)
	leader := newRig(t, ToLeader{Node: led("mine", "")}, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		part := make([]byte, 4)
		if _, err := io.ReadFull(r.Body, part); err != nil || string(part) != "one." {
			t.Errorf("arrived %q: %v", part, err)
		}
		close(arrived)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "8")
		_, _ = io.WriteString(w, "two.")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-received:
		case <-ctx.Done():
			t.Error("the client has not received the part")
		}
		<-r.Context().Done()
	})
	r := newRig(t, ToLeader{Node: led("other", leader.URL)}, never(t))
	body, writes := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(writes, "one.")
		select {
		case <-arrived: // only then does the body end
		case <-ctx.Done():
			t.Error("the part of the body has not arrived")
		}
		writes.Close()
	}()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	part := make([]byte, 4)
	if _, err := io.ReadFull(response.Body, part); err != nil || string(part) != "two." {
		t.Errorf("received %q: %v", part, err)
	}
	close(received)
	cancel()
	<-ended
}

// An answer that does not come is unknown: the client gets 502 and no Retry-After.
func TestABrokenAnswer(t *testing.T) {
	leader := newRig(t, ToLeader{Node: led("mine", "")},
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r := newRig(t, ToLeader{Node: led("other", leader.URL)}, never(t))
	response, text := post(t, r.URL, strings.NewReader("x"), nil)
	r.expect(t, "broken", response, text, http.StatusBadGateway, "EOF")
}

// An answer that breaks off later breaks off at the client, too, and Failed is called.
func TestAnAnswerBreaksOff(t *testing.T) {
	leader := newRig(t, ToLeader{Node: led("mine", "")}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r := newRig(t, ToLeader{Node: led("other", leader.URL)}, never(t))
	response, err := http.Get(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil || string(text) != "part" {
		t.Errorf("received %q: %v", text, err)
	}
	r.Close() // waits for the handler
	if len(r.failed) != 1 || !strings.Contains(r.failed[0].Error(), `httpleader: "k": `) {
		t.Errorf("failed: %v", r.failed)
	}
}

func TestTheLimitForEachPeer(t *testing.T) {
	began, release := make(chan bool, 3), make(chan bool)
	leader := newRig(t, ToLeader{Node: led("mine", "")},
		func(http.ResponseWriter, *http.Request) { began <- true; <-release })
	free := newRig(t, ToLeader{Node: led("mine", "")}, func(http.ResponseWriter, *http.Request) {})
	node := led("other", leader.URL)
	r := newRig(t, ToLeader{Node: node, MaxForwards: 2}, never(t))
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { post(t, r.URL, nil, nil) })
		<-began
	}
	response, text := post(t, r.URL, nil, nil)
	r.expect(t, "full", response, text, http.StatusServiceUnavailable, "too many requests")
	node.mu.Lock()
	node.queue = led("other", free.URL).queue // another leader has its own limit
	node.mu.Unlock()
	if response, _ := post(t, r.URL, nil, nil); response.StatusCode != http.StatusOK {
		t.Error("another peer:", response.Status)
	}
	close(release)
	all.Wait()
	node.mu.Lock()
	node.queue = led("other", leader.URL).queue
	node.mu.Unlock()
	if response, _ := post(t, r.URL, nil, nil); response.StatusCode != http.StatusOK {
		t.Error("afterwards:", response.Status)
	}
}
