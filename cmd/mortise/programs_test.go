//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
)

func derive(t *testing.T, root, cluster, name string, until time.Time, words ...string) string {
	t.Helper()
	rights, err := capability.Build(name, until, words...)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credentials.DeriveSecret(root, cluster, rights.Text())
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func secretFor(t *testing.T, name string, words ...string) string {
	t.Helper()
	return derive(t, testSecret, "mortise", name, time.Time{}, words...)
}

type keySaid struct {
	Key   string
	Held  int
	Queue []mortise.Standing
}

// inn is an agent's HTTP API on a loopback port. Its node is the only instance of a cluster.
type inn struct {
	t      *testing.T
	node   *mortise.Node
	config mortise.Config
	leases *leases
	pool   *programs
	server *httptest.Server
}

func openInn(t *testing.T, allowed tokens, change func(*programs)) *inn {
	t.Helper()
	peers := filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(peers, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := mortise.Config{
		Name: "agent", Bind: "127.0.0.1:0", Join: []string{"file://" + peers}, Replicas: 1, Secret: testSecret,
		Grace:  -1,
		Logger: slog.New(slog.DiscardHandler),
	}
	node, err := mortise.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	if err := node.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return serveInn(t, node, config, allowed, change)
}

func serveInn(t *testing.T, node *mortise.Node, config mortise.Config, allowed tokens, change func(*programs)) *inn {
	all := newLeases(node)
	pool := newPrograms(all.ctx, config, node.Status().Address)
	change(pool)
	server := serving((&door{node: node, leases: all, programs: pool, tokens: allowed,
		entry: newEntry(maxConns), meter: newMeter()}).handler(false))
	t.Cleanup(server.Close)
	t.Cleanup(pool.close)
	t.Cleanup(all.close)
	return &inn{t, node, config, all, pool, server}
}

// another returns a second agent with the same node, and with leases and guests of its own.
func (i *inn) another() *inn {
	return serveInn(i.t, i.node, i.config, nil, standard)
}

func (i *inn) ask(secret, method, path string, body object, answer any) (int, problem) {
	i.t.Helper()
	var text string
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			i.t.Fatal(err)
		}
		text = string(b)
	}
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, i.server.URL+path, strings.NewReader(text))
	if err != nil {
		i.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	said, err := i.server.Client().Do(r)
	if err != nil {
		i.t.Fatal(err)
	}
	defer said.Body.Close()
	var p problem
	if said.StatusCode != http.StatusOK {
		answer = &p
	}
	if answer != nil {
		if err := json.NewDecoder(said.Body).Decode(answer); err != nil {
			i.t.Fatal(err)
		}
	}
	if secret != "" && strings.Contains(p.Error, secret) {
		i.t.Errorf("%s prints the secret: %s", path, p.Error)
	}
	return said.StatusCode, p
}

func (i *inn) post(secret, path string, body object, answer any) (int, problem) {
	i.t.Helper()
	return i.ask(secret, http.MethodPost, path, body, answer)
}

func (i *inn) get(secret, path string, answer any) (int, problem) {
	i.t.Helper()
	return i.ask(secret, http.MethodGet, path, nil, answer)
}

func (i *inn) lease(secret string) string {
	i.t.Helper()
	var lease struct{ Lease string }
	if code, p := i.post(secret, "/v1/leases", object{"ttl_seconds": 300, "name": "x"}, &lease); code != http.StatusOK {
		i.t.Fatalf("%d %+v", code, p)
	}
	return lease.Lease
}

func (i *inn) taken() (places, programs int) {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	return i.pool.places, len(i.pool.all)
}

func standard(*programs) {}

func TestAProgramHasTheRightsOfItsSecret(t *testing.T) {
	i := openInn(t, nil, standard)
	one, all := secretFor(t, "one", "lock a/*", "read a/*"), secretFor(t, "looker", "read *")
	lease := i.lease(one)
	var lock lockText
	if code, p := i.post(one, "/v1/lock", object{"lease": lease, "key": "a/1", "wait_seconds": 30, "value": "v"},
		&lock); code != http.StatusOK || lock.Key != "a/1" || lock.Token == 0 {
		t.Fatalf("%d %+v", code, p)
	}
	k, err := i.node.Peek(t.Context(), "a/1")
	if err != nil || len(k.Queue) != 1 || k.Queue[0].Holder != "agent (for one)" || k.Queue[0].Value != "v" {
		t.Errorf("the leader shows %+v, %v", k, err)
	}

	forbidden := func(kind string) func(code int, p problem, texts ...string) {
		return func(code int, p problem, texts ...string) {
			t.Helper()
			for _, text := range texts {
				if code != http.StatusForbidden || p.Kind != kind || !strings.Contains(p.Error, text) {
					t.Errorf("%d %+v, want %q", code, p, text)
				}
			}
		}
	}
	denied, notOffered := forbidden("denied"), forbidden("not offered")
	code, p := i.post(one, "/v1/lock", object{"lease": lease, "key": "b/1", "wait_seconds": 30}, nil)
	denied(code, p, `"one"`, "lock", "b/1")
	for _, body := range []object{{"key": "a/2", "also": []object{{"key": "a/3"}}, "wait_seconds": 30},
		{"key": "a/2", "tree": true},
		{"key": "a/2", "max_hold_seconds": 60}, {"key": "a/2", "max_idle_seconds": 60},
		{"key": "a/2", "jeopardy_grace_seconds": 60},
		{"key": "a/2", "sticky": true}, {"key": "a/2", "mode": "2 of 3"}, {"key": "a/2", "mode": "upgradable"}} {
		body["lease"] = lease
		var also lockText
		code, p = i.post(one, "/v1/lock", body, &also)
		if body["tree"] != nil { // the secret has no right for the node above
			denied(code, p, `"one"`, "lock", `"a"`)
			continue
		}
		if code != http.StatusOK || also.Key != "a/2" {
			t.Errorf("%v: %d %+v %+v", body, code, p, also)
		}
		if code, p = i.post(one, "/v1/beat", object{"lease": lease, "token": also.Token}, nil); code != http.StatusOK {
			t.Errorf("%v: %d %+v", body, code, p)
		}
		if code, p = i.post(one, "/v1/unlock", object{"lease": lease, "token": also.Token}, nil); code != http.StatusOK {
			t.Errorf("%v: %d %+v", body, code, p)
		}
	}
	code, p = i.post(one, "/v1/ids", object{}, nil)
	notOffered(code, p, "IDs")
	code, p = i.post(one, "/v1/check", object{"key": "b/1", "token": "1"}, nil)
	denied(code, p, `"one"`)
	for _, path := range []string{"/v1/keys", "/v1/keys?prefix=b", "/v1/key?key=b/1", "/v1/watch",
		"/v1/watch?prefix=b", "/v1/status", "/v1/health"} {
		code, p = i.get(one, path, nil)
		denied(code, p, `"one"`)
	}
	code, p = i.get(one, "/readyz", nil)
	notOffered(code, p, "ready")
	for _, path := range []string{"/metrics", "/console/", "/console/status.json?key=b/1"} {
		code, p = i.get(one, path, nil)
		notOffered(code, p, "it cannot see the agent's metrics")
	}

	var held struct{ Held bool }
	for token, want := range map[mortise.Token]bool{lock.Token: true, lock.Token + 1: false, 0: false} {
		if code, p := i.post(one, "/v1/check", object{"key": "a/1", "token": token}, &held); code != http.StatusOK ||
			held.Held != want {
			t.Errorf("token %d: %d %v %+v", token, code, held, p)
		}
	}
	if code, p := i.post(one, "/v1/check", object{"lease": lease, "token": lock.Token},
		&held); code != http.StatusOK || !held.Held {
		t.Errorf("%d %v %+v", code, held, p)
	}
	var keys struct {
		Keys []keySaid
		More bool
	}
	if code, p := i.get(one, "/v1/keys?prefix=a/", &keys); code != http.StatusOK || len(keys.Keys) != 1 ||
		keys.Keys[0].Key != "a/1" || keys.More {
		t.Errorf("%d %+v %+v", code, keys, p)
	}
	var said keySaid
	if code, p := i.get(one, "/v1/key?key=a/1", &said); code != http.StatusOK || len(said.Queue) != 1 ||
		said.Queue[0].Token != lock.Token {
		t.Errorf("%d %+v %+v", code, said, p)
	}
	var e happened
	if code, p := i.get(one, "/v1/watch?prefix=a/", &e); code != http.StatusOK || e.Kind != mortise.EventReset {
		t.Errorf("%d %+v %+v", code, e, p)
	}
	if code, p := i.post(one, "/v1/lock", object{"lease": lease, "key": "a/\x01"}, nil); code != http.StatusBadRequest {
		t.Errorf("%d %+v", code, p)
	}
	if code, p := i.post(one, "/v1/lock", object{"lease": lease, "key": "a/2", "value": strings.Repeat("x", 1025)},
		nil); code != http.StatusBadRequest {
		t.Errorf("%d %+v", code, p)
	}
	var s mortise.Status
	if code, p := i.get(all, "/v1/status", &s); code != http.StatusOK || s.Name != "agent" || s.Leader != "agent" {
		t.Errorf("%d %+v %+v", code, s, p)
	}
	var h mortise.Health
	if code, p := i.get(all, "/v1/health", &h); code != http.StatusOK || h.Leader != "agent" {
		t.Errorf("%d %+v %+v", code, h, p)
	}
	if code, p := i.post(one, "/v1/unlock", object{"lease": lease, "token": lock.Token}, nil); code != http.StatusOK {
		t.Errorf("%d %+v", code, p)
	}
	if k, err := i.node.Peek(t.Context(), "a/1"); err != nil || k.Held != 0 {
		t.Errorf("after unlock: %+v, %v", k, err)
	}
}

// A program with a derived secret changes the value of its locks, and data while it holds a lock,
// with the same rights as without a lock.
func TestAProgramChangesDataUnderItsLock(t *testing.T) {
	i := openInn(t, nil, standard)
	one, reader := secretFor(t, "one", "lock a/*", "write d/*"), secretFor(t, "two", "lock a/*", "read d/*")
	lease, another := i.lease(one), i.lease(reader)
	take := func(secret, lease string, body object) (lock lockText) {
		t.Helper()
		body["lease"] = lease
		if code, p := i.post(secret, "/v1/lock", body, &lock); code != http.StatusOK {
			t.Fatalf("%d %+v", code, p)
		}
		return lock
	}
	lock := take(one, lease, object{"key": "a/1", "value": "v", "labels": object{"team": "blue"}})
	upgradable := take(one, lease, object{"key": "a/2", "mode": "upgradable"})
	sticky := take(one, lease, object{"key": "a/3", "sticky": true})
	theirs := take(reader, another, object{"key": "a/4"})
	var up lockText
	body := object{"lease": lease, "token": upgradable.Token}
	if code, p := i.post(one, "/v1/upgrade", body, &up); code != http.StatusOK {
		t.Fatalf("%d %+v", code, p)
	}
	put := func(key string, revision uint64) object {
		return object{"key": key, "data": []byte("x"), "revision": fmt.Sprint(revision)}
	}
	value := func(text string) object { return object{"value": text} }
	var last dataShown
	check := func(what, secret, lease string, of lockText, body object, code int, kind string) {
		t.Helper()
		body["lease"], body["token"] = lease, of.Token
		path := "/v1/put"
		if body["key"] == nil {
			path = "/v1/value"
		}
		last = dataShown{}
		if got, p := i.post(secret, path, body, &last); got != code || p.Kind != kind {
			t.Errorf("%s: %d %+v, want %d %s", what, got, p, code, kind)
		}
	}
	check("data", one, lease, lock, put("d/1", 0), http.StatusOK, "")
	first := last.Revision
	check("data at another revision", one, lease, lock, put("d/1", 0), http.StatusConflict, "changed")
	check("data again", one, lease, up, put("d/1", first), http.StatusOK, "")
	check("data without the right", one, lease, lock, put("e/1", 0), http.StatusForbidden, "denied")
	check("data with the right to read", reader, another, theirs, put("d/1", 0), http.StatusForbidden, "denied")
	check("data under a lock of another program", one, lease, theirs, put("d/2", 0), http.StatusNotFound, "no lock")
	check("a value of another program", one, lease, theirs, value("w"), http.StatusNotFound, "no lock")
	check("data under a sticky lock", one, lease, sticky, put("d/2", 0), http.StatusBadRequest, "wrong")
	check("a value of a sticky lock", one, lease, sticky, value("w"), http.StatusBadRequest, "wrong")
	check("a value", one, lease, lock, value("w"), http.StatusOK, "")
	check("a long value", one, lease, lock, value(strings.Repeat("x", 1025)), http.StatusBadRequest, "wrong")
	check("a value of an upgrade", one, lease, up, value("up"), http.StatusOK, "")
	for key, want := range map[string]string{"a/1": "w", "a/2": "up"} {
		info, err := i.node.Peek(t.Context(), key)
		if err != nil || info.Queue[0].Value != want || key == "a/1" && info.Queue[0].Labels["team"] != "blue" {
			t.Errorf("%s shows %+v, %v", key, info.Queue, err)
		}
	}
	data, revision, err := i.node.Get(t.Context(), "d/1")
	if err != nil || string(data) != "x" || revision == first || revision == 0 {
		t.Errorf("the data is %q at revision %d, %v", data, revision, err)
	}
	if ended, err := i.node.ForceUnlock(t.Context(), "a/1", lock.Token, "why"); !ended || err != nil {
		t.Fatal(ended, err)
	}
	for what, body := range map[string]object{"data": put("d/1", revision), "a value": value("late")} {
		check(what+" after the end", one, lease, lock, body, http.StatusGone, "lost")
	}
	if _, now, err := i.node.Get(t.Context(), "d/1"); now != revision || err != nil {
		t.Errorf("the data was changed after the end: %d, %v", now, err)
	}
}

// A program can use only its own leases. One of the programs has no secret.
func TestProgramsAreApart(t *testing.T) {
	i := openInn(t, nil, standard)
	one, two := secretFor(t, "one", "lock *"), secretFor(t, "two", "lock *")
	mine := i.lease(one)
	var lock lockText
	if code, p := i.post(one, "/v1/lock", object{"lease": mine, "key": "k"}, &lock); code != http.StatusOK {
		t.Fatalf("%d %+v", code, p)
	}
	agents := i.lease("")
	for secret, lease := range map[string]string{two: mine, "": mine, one: agents} {
		for path, body := range map[string]object{
			"/v1/unlock": {"token": lock.Token}, "/v1/check": {"token": lock.Token}, "/v1/keepalive": {},
			"/v1/end": {}, "/v1/lock": {"key": "other", "wait_seconds": 0},
		} {
			body["lease"] = lease
			if code, p := i.post(secret, path, body, nil); code != http.StatusNotFound || p.Kind != "no lease" {
				t.Errorf("%s: %d %+v", path, code, p)
			}
		}
	}
	theirs := i.lease(two)
	code, p := i.post(two, "/v1/lock", object{"lease": theirs, "key": "k", "wait_seconds": 0}, nil)
	if code != http.StatusConflict || p.Held == nil || p.Held.Token != lock.Token {
		t.Errorf("%d %+v", code, p)
	}
	if code, p = i.post(two, "/v1/unlock", object{"lease": theirs, "token": lock.Token},
		nil); code != http.StatusNotFound || p.Kind != "no lock" {
		t.Errorf("%d %+v", code, p)
	}
	if code, p = i.post(one, "/v1/keepalive", object{"lease": mine}, nil); code != http.StatusOK {
		t.Errorf("%d %+v", code, p)
	}
	i.post(one, "/v1/end", object{"lease": mine}, nil)
	if code, p = i.post(two, "/v1/lock", object{"lease": theirs, "key": "k", "wait_seconds": patience.Seconds()},
		&lock); code != http.StatusOK {
		t.Errorf("%d %+v", code, p)
	}
}

func TestBadSecretsTakeNoPlace(t *testing.T) {
	i := openInn(t, nil, standard)
	good := secretFor(t, "one", "lock *")
	other := credentials.GenerateSecret() // the root secret of another cluster
	member, err := capability.Build("m", time.Time{}, "member")
	if err != nil {
		t.Fatal(err)
	}
	members, err := credentials.DeriveSecret(testSecret, "mortise", member.Text())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		secret, text string
		code         int
	}{
		"garbage":       {"msd1_garbage", "checksum", 401},
		"cut off":       {good[:len(good)-1], "checksum", 401},
		"other cluster": {derive(t, testSecret, "other", "one", time.Time{}, "lock *"), "another cluster", 401},
		"ended":         {derive(t, testSecret, "mortise", "one", time.Now().Add(-time.Hour), "lock *"), "ended", 401},
		"foreign":       {derive(t, other, "mortise", "one", time.Time{}, "lock *"), "another secret", 401},
		"member":        {members, "member", 401},
		"no tokens":     {"md1_misspelt", "no tokens", 401},
	} {
		for range 2 { // the second attempt must also fail
			code, p := i.post(c.secret, "/v1/leases", object{}, nil)
			if code != c.code || !strings.Contains(p.Error, c.text) {
				t.Errorf("%s: %d %+v", name, code, p)
			}
		}
	}
	if places, programs := i.taken(); places != 0 || programs != 0 {
		t.Errorf("%d places and %d programs", places, programs)
	}
	i.lease(good)
	if places, programs := i.taken(); places != 1 || programs != 1 {
		t.Errorf("%d places and %d programs", places, programs)
	}
}

// Secrets that were made up with a root secret of their own are whole in themselves. They must not
// take places, not even while they are checked.
func TestMadeUpSecretsTakeNoPlace(t *testing.T) {
	i := openInn(t, nil, func(ps *programs) { ps.limit = 1 })
	other := credentials.GenerateSecret()
	var all sync.WaitGroup
	for n := range 400 {
		secret := derive(t, other, "mortise", fmt.Sprint("x", n), time.Time{}, "lock *")
		all.Go(func() {
			if code, p := i.post(secret, "/v1/leases", object{}, nil); code != http.StatusUnauthorized {
				t.Errorf("%d %+v", code, p)
			}
		})
	}
	one := secretFor(t, "one", "lock *")
	for n := range 20 {
		ask := object{"lease": i.lease(one), "key": fmt.Sprint("k", n)}
		if code, p := i.post(one, "/v1/lock", ask, nil); code != http.StatusOK {
			t.Errorf("beside made-up secrets: %d %+v", code, p)
		}
	}
	all.Wait()
	if places, programs := i.taken(); places != 1 || programs != 1 {
		t.Errorf("%d places and %d programs", places, programs)
	}
}

// Concurrent requests can fill all places of the pool. A further secret is rejected.
func TestProgramsAreBounded(t *testing.T) {
	i := openInn(t, nil, func(ps *programs) { ps.idle = time.Hour })
	secrets := make([]string, maxPrograms+1)
	for n := range secrets {
		secrets[n] = secretFor(t, fmt.Sprint("p", n), "lock *")
	}
	var all sync.WaitGroup
	few := make(chan struct{}, 8)
	for n := range maxPrograms {
		for range 2 {
			few <- struct{}{}
			all.Go(func() {
				defer func() { <-few }()
				sum, err := i.pool.check(secrets[n])
				if err != nil {
					t.Error(n, err)
				}
				if p, err := i.pool.enter(t.Context(), sum, secrets[n]); err != nil {
					t.Error(n, err)
				} else {
					i.pool.leave(p)
				}
			})
		}
	}
	all.Wait()
	if places, programs := i.taken(); places != maxPrograms || programs != maxPrograms {
		t.Errorf("%d places and %d programs", places, programs)
	}
	if code, p := i.post(secrets[maxPrograms], "/v1/leases", object{}, nil); code != http.StatusServiceUnavailable ||
		!strings.HasPrefix(p.Error, errManySecrets.Error()) {
		t.Errorf("%d %+v", code, p)
	}
	i.lease(secrets[0])
	i.lease("")
}

// An unused guest frees its place. A guest with a lease keeps its place.
func TestPlacesComeBack(t *testing.T) {
	i := openInn(t, nil, func(ps *programs) { ps.limit, ps.idle = 1, time.Millisecond })
	one, two := secretFor(t, "one", "lock *"), secretFor(t, "two", "lock *")
	lease := i.lease(one)
	var lock lockText
	if code, p := i.post(one, "/v1/lock", object{"lease": lease, "key": "k"}, &lock); code != http.StatusOK {
		t.Fatalf("%d %+v", code, p)
	}
	i.pool.mu.Lock()
	for _, p := range i.pool.all {
		if p.using != 1 || p.timer != nil {
			t.Errorf("with a lease: %d users, timer %v", p.using, p.timer)
		}
	}
	i.pool.mu.Unlock()
	if code, p := i.post(two, "/v1/leases", object{}, nil); code != http.StatusServiceUnavailable ||
		!strings.HasPrefix(p.Error, errManySecrets.Error()) {
		t.Errorf("%d %+v", code, p)
	}
	i.post(one, "/v1/end", object{"lease": lease}, nil)
	eventually(t, "the place comes back", func() error {
		if code, p := i.post(two, "/v1/leases", object{"ttl_seconds": 300}, nil); code != http.StatusOK {
			return fmt.Errorf("%d %+v", code, p)
		}
		return nil
	})
	sessions, err := i.node.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if strings.Contains(s.Name, "for one") {
			t.Errorf("the session of a guest that is closed goes on: %+v", s)
		}
	}
}

func TestTheAgentsEndClosesPrograms(t *testing.T) {
	i := openInn(t, nil, standard)
	one := secretFor(t, "one", "lock *")
	if code, p := i.post(one, "/v1/lock", object{"lease": i.lease(one), "key": "k"}, nil); code != http.StatusOK {
		t.Fatalf("%d %+v", code, p)
	}
	i.leases.close()
	i.pool.close()
	if places, programs := i.taken(); places != 0 || programs != 0 {
		t.Errorf("%d places and %d programs", places, programs)
	}
	if k, err := i.node.Peek(t.Context(), "k"); err != nil || k.Held != 0 {
		t.Errorf("%+v, %v", k, err)
	}
	for _, secret := range []string{one, secretFor(t, "two", "lock *")} {
		if code, p := i.post(secret, "/v1/leases", object{}, nil); code != http.StatusServiceUnavailable {
			t.Errorf("%d %+v", code, p)
		}
	}
}

// An agent with a token file also accepts derived secrets. An agent without a secret accepts none.
func TestDerivedSecretsAtTheDoor(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	allowed, err := (&call{}).readTokens("", token)
	if err != nil {
		t.Fatal(err)
	}
	i := openInn(t, allowed, standard)
	good := secretFor(t, "one", "lock *")
	for secret, want := range map[string]int{"": 401, token + "0": 401, "msd1_garbage": 401, token: 200, good: 200} {
		if code, p := i.post(secret, "/v1/leases", object{}, nil); code != want {
			t.Errorf("%q: %d %+v", secret, code, p)
		}
	}
	server, _ := doorTo(t, nil)
	if code, text := ask(t, server.Client(), http.MethodGet, server.URL+"/v1/status", "", "Authorization",
		"Bearer "+good); code != http.StatusUnauthorized || !strings.Contains(text, "accepts no derived secrets") {
		t.Errorf("%d %s", code, text)
	}
	if ps := newPrograms(t.Context(), mortise.Config{Secret: testSecret}, ""); ps.limit != 0 {
		t.Error("an agent without a way to the cluster takes secrets")
	}
}

func TestProgramsOfAFleet(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	secret := secretFor(t, "cron-host", "lock cron/*")
	for n, agent := range f.agents {
		post := func(path string, body object, answer any) int {
			t.Helper()
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path,
				strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+secret)
			said, err := agent.client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer said.Body.Close()
			if err := json.NewDecoder(said.Body).Decode(answer); err != nil {
				t.Fatal(err)
			}
			return said.StatusCode
		}
		var lease struct{ Lease string }
		if code := post("/v1/leases", object{"ttl_seconds": 300}, &lease); code != http.StatusOK {
			t.Fatal(code)
		}
		key := fmt.Sprint("cron/", n)
		var lock lockText
		if code := post("/v1/lock", object{"lease": lease.Lease, "key": key, "wait_seconds": patience.Seconds()},
			&lock); code != http.StatusOK {
			t.Fatal(code)
		}
		f.mortise("get", key).wants(t, exitOK, agent.name+" (for cron-host)")
		var p problem
		if code := post("/v1/lock", object{"lease": lease.Lease, "key": "other", "wait_seconds": patience.Seconds()},
			&p); code != http.StatusForbidden || p.Kind != "denied" {
			t.Errorf("%d %+v", code, p)
		}
		if text, err := os.ReadFile(agent.log.Name()); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("the log has the secret, or %v", err)
		}
	}
}
