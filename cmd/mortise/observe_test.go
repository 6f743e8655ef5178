//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func body(t *testing.T, method, url string, headers ...string) (code int, text, challenge string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all), answer.Header.Get("WWW-Authenticate")
}

func TestMetricsAreThoseOfTheAdapter(t *testing.T) {
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	table := read("..", "..", "adapters", "mortiseotel", "internal", "table", "table.go")
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\s+= "(mortise\.[^"]+)"`).FindAllStringSubmatch(table, -1) {
		names[m[1]] = m[2]
	}
	var want []string
	for _, m := range regexp.MustCompile(`\{(\w+), (Counter|Histogram|Gauge|Sum), "([^"]*)",\s+"([^"]*)",`).
		FindAllStringSubmatch(table, -1) {
		name := strings.ReplaceAll(names[m[1]], ".", "_")
		if m[3] == "s" {
			name += "_seconds"
		}
		kind := strings.ToLower(m[2])
		if kind == "counter" || kind == "sum" {
			name, kind = name+"_total", "counter"
		}
		want = append(want, name+" "+kind+" "+m[4])
	}
	var got []string
	for _, m := range measures() {
		got = append(got, m.name+" "+m.kind+" "+m.help)
	}
	if len(want) < 25 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the agent has\n%s\nthe adapter has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	lists := regexp.MustCompile(`\[\](float64|string)\{[^}]+\}`).FindAllString(read("metrics.go"), -1)
	if len(lists) < 7 {
		t.Errorf("only %d lists", len(lists))
	}
	for _, list := range lists {
		if !strings.Contains(table, list) {
			t.Errorf("the adapter has no %s", list)
		}
	}

	var out bytes.Buffer
	newMeter().write(&out, mortise.Status{Member: mortise.Member{Votes: true}, Leading: true, Health: &mortise.Health{}})
	for _, name := range regexp.MustCompile(`mortise_[a-z_]+`).FindAllString(read("..", "..", "adapters",
		"mortiseotel", "alerts.yml"), -1) {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if !strings.Contains(out.String(), "# TYPE "+base+" ") {
			t.Errorf("an alert rule asks for %s", name)
		}
	}
}

func TestMetricsOfAnAgent(t *testing.T) {
	m := newMeter()
	h := m.hooks()
	h.Acquired(t.Context(), mortise.LockEvent{Outcome: mortise.OutcomeGranted,
		Took: 5 * time.Millisecond, Waiting: 0})
	h.Acquired(t.Context(), mortise.LockEvent{Outcome: mortise.OutcomeGranted,
		Took: time.Hour, Waiting: -1})
	h.Lost(mortise.LockEvent{Part: mortise.Part{Mode: mortise.Shared}, Outcome: mortise.OutcomeForced, Held: time.Second})
	for token := range mortise.Token(4) {
		h.InDoubt(mortise.LockEvent{Token: token, Outcome: mortise.OutcomeInDoubt})
	}
	h.InDoubt(mortise.LockEvent{Token: 0, Outcome: mortise.OutcomeRegained})
	for range 2 { // the second time the lock is not in doubt
		h.Lost(mortise.LockEvent{Token: 1, Outcome: mortise.OutcomeExpired})
		h.Unlocked(t.Context(), mortise.LockEvent{Token: 0, Outcome: mortise.OutcomeConfirmed})
		h.Unlocked(t.Context(), mortise.LockEvent{Token: 2, Outcome: mortise.OutcomeConfirmed})
		h.Unlocked(t.Context(), mortise.LockEvent{Token: 3, Outcome: mortise.OutcomeLost})
	}
	for _, s := range []mortise.State{mortise.LeaseJeopardy, mortise.LeaderNew, mortise.LeaderNone,
		mortise.RenewalUnanswered} {
		h.Node(mortise.NodeEvent{State: s})
	}
	h.Synced(time.Millisecond, nil)
	var out bytes.Buffer
	m.write(&out, mortise.Status{Held: 3, Waiters: 5, Standby: 1, Leader: "a", Age: 90 * time.Second,
		Voters: []mortise.Member{{Votes: true}, {}}})
	for _, line := range []string{
		`# TYPE mortise_lock_wait_duration_seconds histogram`,
		`mortise_lock_wait_duration_seconds_bucket{kind="exclusive",outcome="granted",le="0.002"} 0`,
		`mortise_lock_wait_duration_seconds_bucket{kind="exclusive",outcome="granted",le="0.005"} 1`,
		`mortise_lock_wait_duration_seconds_bucket{kind="exclusive",outcome="granted",le="1800"} 1`,
		`mortise_lock_wait_duration_seconds_bucket{kind="exclusive",outcome="granted",le="+Inf"} 2`,
		`mortise_lock_wait_duration_seconds_sum{kind="exclusive",outcome="granted"} 3600.005`,
		`mortise_lock_wait_duration_seconds_count{kind="exclusive",outcome="granted"} 2`,
		`mortise_lock_queue_length_count{kind="exclusive"} 1`,
		`mortise_lock_losses_total{reason="forced"} 1`,
		`mortise_lock_losses_total{reason="lease"} 0`,
		`mortise_lock_hold_duration_seconds_count{kind="shared",end="lost"} 1`,
		`mortise_lease_changes_total{state="jeopardy"} 1`,
		`mortise_lock_doubts_total{state="in_doubt"} 4`, `mortise_lock_doubts_total{state="regained"} 1`,
		`mortise_lock_doubts_total{state="lost"} 2`, `mortise_lock_doubts_total{state="unlocked"} 1`,
		`mortise_leader_changes_total 1`,
		`mortise_session_renewal_failures_total 1`,
		`mortise_lock_leaks_total 0`,
		`mortise_log_sync_duration_seconds_bucket{outcome="synced",le="0.001"} 1`,
		`mortise_lock_held 3`, `mortise_lock_waiters 4`, `mortise_leader_known 1`, `mortise_voters 1`,
		`mortise_node_time_seconds_total 90`,
	} {
		if !strings.Contains(out.String(), "\n"+line+"\n") {
			t.Errorf("%s is not in\n%s", line, &out)
		}
	}
	for _, only := range []string{"mortise_term", "mortise_members", "mortise_voters_missing",
		"mortise_node_starved_time_seconds_total"} {
		if strings.Contains(out.String(), "\n"+only+" ") {
			t.Errorf("%s is said by an instance that does not know it", only)
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("*** SKIPPED: promtool is not installed: apt-get install -y --no-install-recommends prometheus ***")
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = &out
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// The metrics and the page need the same token as the API. A browser can send a token only for the
// page.
func TestThePageIsBehindTheDoor(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	allowed, err := (&call{}).readTokens("", token)
	if err != nil {
		t.Fatal(err)
	}
	closed, _ := doorTo(t, allowed)
	open, _ := doorTo(t, nil)
	basic := func(password string) string {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth("me", password)
		return r.Header.Get("Authorization")
	}
	for _, c := range []struct {
		url     string
		headers []string
		code    int
		text    string
	}{
		{open.URL + "/metrics", nil, 200, "\nmortise_node_failed 0\n"},
		{open.URL + "/console/", nil, 200, "<html"},
		{open.URL + "/console/status.json", nil, 200, `"at":`},
		{open.URL + "/console/status.json", []string{"Sec-Fetch-Site", "same-origin"}, 200, `"at":`},
		{open.URL + "/console/", []string{"Sec-Fetch-Site", "cross-site"}, 403, "web pages"},
		{open.URL + "/console/", []string{"Sec-Fetch-Site", "same-site"}, 403, "web pages"},
		{open.URL + "/console/", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost"}, 403,
			"web pages"},
		{open.URL + "/metrics", []string{"Sec-Fetch-Site", "same-origin"}, 403, "web pages"},
		{open.URL + "/console/../v1/status", []string{"Sec-Fetch-Site", "same-origin"}, 403, "web pages"},
		{closed.URL + "/metrics", nil, 401, "Bearer"},
		{closed.URL + "/metrics", []string{"Authorization", "Bearer " + token}, 200, "mortise_voters"},
		{closed.URL + "/metrics", []string{"Authorization", basic(token)}, 401, "Bearer"},
		{closed.URL + "/v1/status", []string{"Authorization", basic(token)}, 401, "Bearer"},
		{closed.URL + "/console/", nil, 401, "Bearer"},
		{closed.URL + "/console/", []string{"Authorization", basic(token[1:])}, 401, "Bearer"},
		{closed.URL + "/console/", []string{"Authorization", basic(token)}, 200, "<html"},
		{closed.URL + "/console/", []string{"Authorization", "Bearer " + token}, 200, "<html"},
	} {
		code, text, challenge := body(t, http.MethodGet, c.url, c.headers...)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s %q: %d %.200s", c.url, c.headers, code, text)
		}
		if isPage := strings.Contains(c.url, "/console/"); code == 401 &&
			strings.HasPrefix(challenge, "Basic") != isPage {
			t.Errorf("%s asks for %q", c.url, challenge)
		}
	}
	if code, text, _ := body(t, http.MethodPost, open.URL+"/console/"); code != http.StatusMethodNotAllowed {
		t.Errorf("the page does something: %d %s", code, text)
	}
}

// The simulation is a page only of an agent that serves it: mortise dev -try. Other agents treat
// its path like one that they do not have.
func TestTheSimulationIsAPageOnlyWhereItIsServed(t *testing.T) {
	allowed, err := (&call{}).readTokens("", "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "wasm.js"), []byte("the simulation"), 0o600); err != nil {
		t.Fatal(err)
	}
	dev, _ := doorTo(t, nil, func(d *door) { d.try = dir })
	other, _ := doorTo(t, nil)
	closed, _ := doorTo(t, allowed)
	for _, c := range []struct {
		url, site string
		code      int
		text      string
	}{
		{dev.URL, "same-origin", 200, "the simulation"},
		{dev.URL, "cross-site", 403, "web pages"},
		{dev.URL, "", 200, "the simulation"},
		{other.URL, "same-origin", 403, "web pages"},
		{other.URL, "", 404, "no such path"},
		{closed.URL, "same-origin", 403, "web pages"},
		{closed.URL, "", 401, "Bearer"},
	} {
		code, text, challenge := body(t, http.MethodGet, c.url+"/try/wasm.js", "Sec-Fetch-Site", c.site)
		if code != c.code || !strings.Contains(text, c.text) || strings.HasPrefix(challenge, "Basic") {
			t.Errorf("%s %q: %d %.200s, asks for %q", c.url, c.site, code, text, challenge)
		}
	}
}

// The address of -observe serves only the metrics, the page and the probes. Tokens are needed if it
// is not a loopback address.
func TestObserve(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	f := &fleet{t: t}
	far := agentOptions{listen: "127.0.0.1:0", observe: "0.0.0.0:0"}
	if all, err := far.listeners(false); err == nil || !strings.Contains(err.Error(), "-observe: ") ||
		!strings.Contains(err.Error(), "neither a loopback address") {
		t.Fatalf("without tokens it listens at %v, %v", all, err)
	}
	cmd := f.command("agent", "-listen", "127.0.0.1:0", "-observe", "0.0.0.0:0", "-o", "json")
	cmd.Env = append(cmd.Env, "MORTISE_AGENT_TOKEN="+token)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var at map[string]string
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil || at["observe"] == "" {
		t.Fatalf("%s, %v", line, err)
	}
	url := "http://localhost" + at["observe"][strings.LastIndex(at["observe"], ":"):]
	with := []string{"Authorization", "Bearer " + token}
	for path, want := range map[string]int{"/metrics": 200, "/console/": 200, "/v1/status": 404, "/v1/leases": 404,
		"/": 404} {
		if code, text, _ := body(t, http.MethodGet, url+path, with...); code != want {
			t.Errorf("%s: %d %.200s", path, code, text)
		} else if path == "/console/" && !strings.Contains(text, `id="past"`) {
			t.Error("the page does not show the last hour")
		}
		if code, _, _ := body(t, http.MethodGet, url+path); code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, code)
		}
	}
	if code, _, _ := body(t, http.MethodGet, url+"/healthz"); code != http.StatusOK {
		t.Errorf("a probe: %d", code)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The pages of agents link to each other, and a pattern that makes no links is refused.
func TestLinksBetweenPages(t *testing.T) {
	m := mortise.Member{Name: "a b/c", Address: "[2001:db8::1]:7947"}
	for pattern, want := range map[string]string{
		"http://{host}:7949/console/":     "http://[2001:db8::1]:7949/console/",
		"https://ops/{name}/console/?a=1": "https://ops/a%20b%2Fc/console/?a=1",
	} {
		link, err := linksTo(pattern)
		if err != nil || link(m) != want {
			t.Errorf("%s: %v", pattern, err)
		}
		if deaf := link(mortise.Member{Name: "x"}); strings.Contains(pattern, "{host}") != (deaf == "") {
			t.Errorf("%s: an agent without an address is at %q", pattern, deaf)
		}
	}
	for _, wrong := range []string{"{host}", "ftp://{host}/", "http://ops/console/", "javascript:{name}"} {
		if link, err := linksTo(wrong); err == nil || link != nil || !strings.Contains(err.Error(), "-consoles: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
