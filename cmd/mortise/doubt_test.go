//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// bench is the HTTP API of an agent on a node of a cluster in fake time, without a network.
type bench struct {
	t       *testing.T
	leases  *leases
	handler http.Handler
	told    map[mortise.Token]lockText // as a client with /v1/hold is told
}

func newBench(t *testing.T, node *mortise.Node) *bench {
	all := newLeases(node)
	t.Cleanup(all.close)
	d := &door{node: node, leases: all, programs: newPrograms(t.Context(), mortise.Config{}, ""),
		entry: newEntry(maxConns), meter: newMeter()}
	return &bench{t, all, d.handler(true), map[mortise.Token]lockText{}}
}

// post returns the code of an answer, and the answer.
func (b *bench) post(path string, body object) (int, map[string]any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://localhost"+path,
		strings.NewReader(string(text)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		b.t.Fatal(err)
	}
	if fault := readAPI(b.t).answerFault(path, w.Code, answer); fault != "" {
		b.t.Error(fault)
	}
	return w.Code, answer
}

// news returns the lines that the lease gets, as JSON.
func (b *bench) news(lease any) (lines string) {
	b.t.Helper()
	l, err := b.leases.find(nil, lease.(string))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, n := range b.leases.news(l, b.told) {
		text, err := dialect(n)
		if err != nil {
			b.t.Fatal(err)
		}
		lines += string(text)
	}
	return lines
}

// cutAll cuts each node off from all others, so that the group has no majority.
func cutAll(c *mortisetest.Cluster) {
	c.Cut(0, 1)
	c.Cut(0, 2)
	c.Cut(1, 2)
}

// A lock with a grace stays with its lease while it is in doubt, every answer reports the doubt,
// and it is good again with the same token when the group works again. A lock without a grace is
// lost.
func TestALockInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		c.Ready()
		b := newBench(t, c.Node(0))
		_, opened := b.post("/v1/leases", object{"ttl_seconds": 600})
		lease := opened["lease"]
		code, mine := b.post("/v1/lock", object{"lease": lease, "key": "k", "jeopardy_grace_seconds": 300, "notice": true})
		if code != http.StatusOK {
			t.Fatal(code, mine)
		}
		_, plain := b.post("/v1/lock", object{"lease": lease, "key": "plain"})
		with := object{"lease": lease, "token": mine["token"]}
		regain := func(wait float64) (int, map[string]any) {
			return b.post("/v1/regain", object{"lease": lease, "token": mine["token"], "wait_seconds": wait})
		}
		if code, said := regain(0); code != http.StatusOK || said["token"] != mine["token"] {
			t.Errorf("regain of a lock that is held: %d %v", code, said)
		}
		cutAll(c)
		time.Sleep(time.Minute) // fake time
		if _, said := b.post("/v1/check", with); said["held"] != false || said["in_doubt"] != true {
			t.Errorf("the check says %v", said)
		}
		lines := b.news(lease)
		if !strings.Contains(lines, `"in_doubt":true`) || !strings.Contains(lines, `"lost":`) ||
			strings.Count(lines, "\n") != 2 || b.news(lease) != "" {
			t.Errorf("the lines are %s", lines)
		}
		_, kept := b.post("/v1/keepalive", object{"lease": lease})
		locks, _ := kept["locks"].([]any)
		if len(locks) != 1 || locks[0].(map[string]any)["in_doubt"] != true || locks[0].(map[string]any)["key"] != "k" {
			t.Errorf("the keepalive says %v", kept)
		}
		if code, said := regain(1); code != http.StatusConflict || said["kind"] != "in doubt" {
			t.Errorf("regain in doubt: %d %v", code, said)
		}
		if code, said := b.post("/v1/downgrade", with); code != http.StatusConflict || said["kind"] != "in doubt" {
			t.Errorf("downgrade in doubt: %d %v", code, said)
		}
		if code, said := b.post("/v1/regain", object{"lease": lease, "token": plain["token"]}); code != http.StatusNotFound {
			t.Errorf("regain of a lost lock: %d %v", code, said)
		}
		c.Heal()
		if code, said := regain(240); code != http.StatusOK || said["token"] != mine["token"] {
			t.Fatalf("regain: %d %v", code, said)
		}
		if lines := b.news(lease); strings.Contains(lines, "doubt") || !strings.Contains(lines, `"key":"k"`) {
			t.Errorf("the lines are %s", lines)
		}
		if _, said := b.post("/v1/check", with); said["held"] != true || said["in_doubt"] != nil {
			t.Errorf("the check says %v", said)
		}
		if code, said := b.post("/v1/unlock", with); code != http.StatusOK {
			t.Errorf("unlock: %d %v", code, said)
		}
	})
}

// A doubt that a leader ends with the session is a loss.
func TestADoubtIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		c.Ready()
		b := newBench(t, c.Node(0))
		_, opened := b.post("/v1/leases", object{"ttl_seconds": 600})
		lease := opened["lease"]
		_, mine := b.post("/v1/lock", object{"lease": lease, "key": "k", "jeopardy_grace_seconds": 300})
		c.Isolate(0)
		time.Sleep(time.Minute) // fake time
		if lines := b.news(lease); !strings.Contains(lines, `"in_doubt":true`) {
			t.Errorf("the lines are %s", lines)
		}
		c.Heal()
		code, said := b.post("/v1/regain", object{"lease": lease, "token": mine["token"], "wait_seconds": 240})
		if code != http.StatusGone || said["kind"] != "lost" {
			t.Errorf("regain: %d %v", code, said)
		}
		if lines := b.news(lease); !strings.Contains(lines, `"lost":`) {
			t.Errorf("the lines are %s", lines)
		}
	})
}

// Without a majority a run gets 503, which its client repeats, and no answer that it would read as
// the lock info of a holder.
func TestTofuWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		c.Ready()
		b := newBench(t, c.Node(0))
		ask := func(method string) (int, string) {
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost/v1/tofu?key=k",
				strings.NewReader(`{"ID":"1"}`))
			w := httptest.NewRecorder()
			b.handler.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		cutAll(c)
		for range 2 {
			for _, method := range []string{"LOCK", "UNLOCK"} {
				if code, text := ask(method); code != http.StatusServiceUnavailable {
					t.Errorf("%s: %d %s", method, code, text)
				}
			}
			time.Sleep(time.Minute) // fake time
		}
		c.Heal()
		c.Ready()
		for _, method := range []string{"LOCK", "UNLOCK"} {
			if code, text := ask(method); code != http.StatusOK {
				t.Errorf("%s: %d %s", method, code, text)
			}
		}
	})
}
