//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

func doorTo(t *testing.T, allowed tokens, change ...func(*door)) (*httptest.Server, *leases) {
	t.Helper()
	node, err := mortise.Start(t.Context(), mortise.Config{Name: "n", Grace: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	all := newLeases(node)
	t.Cleanup(all.close)
	d := &door{node: node, leases: all, programs: newPrograms(all.ctx, mortise.Config{}, ""),
		tokens: allowed, entry: newEntry(maxConns), meter: newMeter()}
	for _, apply := range change {
		apply(d)
	}
	server := serving(d.handler(false))
	t.Cleanup(server.Close)
	return server, all
}

// serving serves a handler of the door as agent does. The caller closes the server.
func serving(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(nil)
	server.Config = newServer(handler)
	server.Listener = newGate(server.Listener, maxConns)
	server.Start()
	return server
}

// ask returns the status code and the body of a request. headers are pairs of a name and a value.
func ask(t *testing.T, client *http.Client, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if answer.StatusCode != http.StatusOK { // the body of a successful watch does not end
		if _, err := text.ReadFrom(answer.Body); err != nil {
			t.Fatal(err)
		}
	}
	return answer.StatusCode, text.String()
}

// A browser sends requests for an image or a link without the header Origin.
func TestTheDoorRefusesOtherSites(t *testing.T) {
	server, _ := doorTo(t, nil)
	for _, path := range []string{"/v1/watch", "/v1/keys", "/v1/key?key=k", "/v1/status", "/v1/health", "/readyz",
		"/healthz"} {
		for _, site := range []string{"cross-site", "same-site", "same-origin"} {
			if code, text := ask(t, server.Client(), http.MethodGet, server.URL+path, "", "Sec-Fetch-Site",
				site); code != http.StatusForbidden {
				t.Errorf("%s from %s: %d %s", path, site, code, text)
			}
		}
	}
	for _, path := range []string{"/v1/leases", "/v1/hold"} {
		if code, _ := ask(t, server.Client(), http.MethodPost, server.URL+path, "{}", "Sec-Fetch-Site",
			"cross-site"); code != http.StatusForbidden {
			t.Errorf("%s: %d", path, code)
		}
	}
	for _, headers := range [][]string{nil, {"Sec-Fetch-Site", "none"}} {
		if code, text := ask(t, server.Client(), http.MethodGet, server.URL+"/v1/watch", "",
			headers...); code != http.StatusOK {
			t.Errorf("%v: %d %s", headers, code, text)
		}
	}
}

func TestTheDoorWantsAToken(t *testing.T) {
	const one, two = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(one+"\n\n "+two+"\r\n"+two+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	c := &call{errs: &errs}
	allowed, err := c.readTokens(path, "")
	if err != nil || len(allowed) != 3 || errs.Len() != 0 {
		t.Fatal(len(allowed), err, errs.String())
	}
	server, all := doorTo(t, allowed)
	for header, want := range map[string]int{
		"": 401, "Bearer ": 401, "Bearer " + one[1:]: 401, one: 401, "Basic " + one: 401, "Bearer " + one +
			"0": 401, "Bearer " + one: 200, "Bearer " + two: 200,
	} {
		for method, path := range map[string]string{http.MethodGet: "/v1/status", http.MethodPost: "/v1/leases"} {
			code, text := ask(t, server.Client(), method, server.URL+path,
				map[string]string{http.MethodPost: "{}"}[method], "Authorization", header)
			if code != want || strings.Contains(text, one) {
				t.Errorf("%s with %q: %d %s", path, header, code, text)
			}
		}
	}
	if code, _ := ask(t, server.Client(), http.MethodGet, server.URL+"/healthz", ""); code != http.StatusOK {
		t.Errorf("a probe: %d", code)
	}
	if len(all.places.each) != 2 {
		t.Errorf("%d clients, want one for each token", len(all.places.each))
	}

	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.readTokens(path, ""); err != nil || !strings.Contains(errs.String(), path+" has the mode 0644") ||
		!strings.Contains(errs.String(), "chmod 600 "+path) {
		t.Errorf("%v, %s", err, &errs)
	}
	for _, wrong := range [][2]string{{path, one}, {path + "none", ""}, {"", "short"}, {os.DevNull, ""}} {
		if got, err := c.readTokens(wrong[0], wrong[1]); err == nil || got != nil ||
			strings.Contains(err.Error(), "short") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if got, err := c.readTokens("", ""); err != nil || got != nil {
		t.Error(got, err)
	}
}

// A client that opens leases without end must not use up the leases of other clients, on however
// many connections it asks.
func TestLeasesAreBoundedForEachClient(t *testing.T) {
	const one, two = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	server, all := doorTo(t, tokens{sha256.Sum256([]byte(one)), sha256.Sum256([]byte(two))})
	open := func(token string) (int, string) {
		fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // another connection each time
		return ask(t, fresh, http.MethodPost, server.URL+"/v1/leases", `{"ttl_seconds": 600}`, "Authorization",
			"Bearer "+token)
	}
	for i := range maxLeases/2 - 1 {
		if _, err := all.open(1, "", maxLeaseTTL); err != nil { // as the holder of the first token
			t.Fatal(i, err)
		}
	}
	if code, text := open(one); code != http.StatusOK {
		t.Errorf("the last of its share: %d %s", code, text)
	}
	for range 10 {
		if code, text := open(one); code != http.StatusServiceUnavailable || !strings.Contains(text, errTooMuch.Error()) {
			t.Errorf("one more: %d %s", code, text)
		}
	}
	if code, text := open(two); code != http.StatusOK {
		t.Errorf("another client: %d %s", code, text)
	}
	for id := range all.all {
		all.drop(id, "")
	}
	if len(all.places.each) != 0 || all.places.taken != 0 {
		t.Errorf("%d clients are left without leases, with %d places", len(all.places.each), all.places.taken)
	}
}

// Ten connections of clients that show neither a token nor a secret have one client's share of the
// leases together, and leave the rest to others.
func TestLeasesAreNotCountedByConnection(t *testing.T) {
	server, all := doorTo(t, nil)
	for i := range maxLeases/2 - 1 {
		if _, err := all.open(anyone{}, "", maxLeaseTTL); err != nil {
			t.Fatal(i, err)
		}
	}
	opened := 0
	for range 10 {
		client := &http.Client{Transport: &http.Transport{}} // a connection of its own, which stays open
		defer client.CloseIdleConnections()
		for range 2 {
			code, text := ask(t, client, http.MethodPost, server.URL+"/v1/leases", `{"ttl_seconds": 600}`)
			switch {
			case code == http.StatusOK:
				opened++
			case code != http.StatusServiceUnavailable || !strings.Contains(text, errTooMuch.Error()):
				t.Errorf("%d %s", code, text)
			}
		}
	}
	if opened != 1 {
		t.Errorf("ten connections have opened %d leases beyond the share of one client", opened-1)
	}
	if _, err := all.open(localUser(1), "", maxLeaseTTL); err != nil {
		t.Errorf("another client: %v", err)
	}
}

func TestALeaseHasAPlainName(t *testing.T) {
	server, _ := doorTo(t, nil)
	for _, path := range []string{"/v1/leases", "/v1/hold"} {
		if code, text := ask(t, server.Client(), http.MethodPost, server.URL+path,
			`{"name":"x\u001b[2J"}`); code != http.StatusBadRequest || !strings.Contains(text, "name") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestAnAgentOnItsOwnHasASecret(t *testing.T) {
	secrets := map[string]bool{}
	for range 3 {
		var errs bytes.Buffer
		config := mortise.Config{Bind: "127.0.0.1:0"}
		(&call{errs: &errs}).secure(&config)
		if secrets[config.Secret] = true; len(config.Secret) < 32 || errs.Len() != 0 {
			t.Errorf("%d bytes, %s", len(config.Secret), &errs)
		}
	}
	if len(secrets) != 3 {
		t.Error("agents have the same secret")
	}
	for name, config := range map[string]mortise.Config{
		"secret": {Secret: "s"}, "insecure": {Insecure: true}, "files": {TLSFiles: mortise.TLSFiles{Cert: "c"}},
		"join": {Join: []string{"127.0.0.1:1"}},
	} {
		var errs bytes.Buffer
		before := config.Secret
		(&call{errs: &errs}).secure(&config)
		if config.Secret != before || strings.Contains(errs.String(),
			"every user of this machine") != (name == "join") {
			t.Errorf("%s: %q, %s", name, config.Secret, &errs)
		}
	}
}
