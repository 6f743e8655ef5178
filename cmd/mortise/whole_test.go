//go:build unix

package main

import (
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// What is built from many fields is compared as a whole, with another value in each field.

func TestEachFigureHasItsField(t *testing.T) {
	s := mortise.Status{Leader: "a", Leading: true, Term: 2, Held: 20, Waiters: 9, Standby: 5, LeaseFor: 6 * time.Second,
		Sticky: mortise.StickyStatus{Kept: 7, Grants: 8, Recalls: 10, RecallTime: 11 * time.Second, InUse: 12},
		Voters: []mortise.Member{{Votes: true}, {}, {Votes: true}}, VotersWanted: 3, HooksDropped: 13,
		Age: 14 * time.Second, Available: 15 * time.Second, Starved: 16 * time.Second,
		Health: &mortise.Health{Members: 17, Surplus: 18, Differs: []string{"State: x", "Grace: y", "State: z"}}}
	s.Votes = true
	want := map[string]float64{"lock_held": 20, "lock_waiters": 4, "lock_standby": 5, "lock_kept": 7,
		"lock_kept_grants_total": 8, "lock_kept_recalls_total": 10, "lock_kept_recall_time_seconds_total": 11,
		"lock_kept_in_use_total": 12, "lease_remaining_seconds": 6, "leader_known": 1, "leader_here": 1, "voters": 2,
		"disk_fault": 0, "disk_low": 0, "node_time_seconds_total": 14, "node_available_time_seconds_total": 15,
		"node_failed": 0, "hooks_dropped_total": 13, "term": 2, "node_starved_time_seconds_total": 16, "members": 17,
		"voters_missing": 1, "surplus_instances": 18, "replicas_diverged": 2}
	if got := observed(s); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	for what, c := range map[string]struct {
		change func(*mortise.Status)
		want   map[string]float64
	}{
		"a faulty disk": {func(s *mortise.Status) { s.Disk = &mortise.DiskFault{State: mortise.DiskHung} },
			map[string]float64{"disk_fault": 1}},
		"a full disk": {func(s *mortise.Status) { s.Disk = &mortise.DiskFault{State: mortise.DiskLow} },
			map[string]float64{"disk_low": 1}},
		"failed":    {func(s *mortise.Status) { s.Err = errors.New("x") }, map[string]float64{"node_failed": 1}},
		"no leader": {func(s *mortise.Status) { s.Leader = "" }, map[string]float64{"leader_known": 0}},
		"follows":   {func(s *mortise.Status) { s.Leading = false }, map[string]float64{"leader_here": 0}},
		"two are silent": {func(s *mortise.Status) { s.Health = &mortise.Health{Missing: make([]mortise.MissingVoter, 2)} },
			map[string]float64{"voters_missing": 2, "members": 0, "surplus_instances": 0, "replicas_diverged": 0}},
		"more than are wanted": {func(s *mortise.Status) { s.VotersWanted = 1 }, map[string]float64{"voters_missing": 0}},
		"more stand by": {func(s *mortise.Status) { s.Standby = 10 },
			map[string]float64{"lock_standby": 10, "lock_waiters": 0}},
	} {
		changed, all := s, maps.Clone(want)
		c.change(&changed)
		maps.Copy(all, c.want)
		if got := observed(changed); !maps.Equal(got, all) {
			t.Errorf("%s: %v\nwant %v", what, got, all)
		}
	}
}

func TestAContextSetsEachVariable(t *testing.T) {
	dir := t.TempDir()
	full := clusterContext{Join: []string{"a:1", "b:1"}, Cluster: "c", SecretFile: "secret", TLSCert: "cert",
		TLSKey: filepath.Join(dir, "key"), TLSCA: "ca", TLSPeers: []string{"p", "q"}, Insecure: true}
	want := map[string]string{"JOIN": "a:1,b:1", "CLUSTER": "c", "SECRET_FILE": filepath.Join("etc", "secret"),
		"TLS_CERT_FILE": filepath.Join("etc", "cert"), "TLS_KEY_FILE": full.TLSKey,
		"TLS_CA_FILE": filepath.Join("etc", "ca"), "TLS_PEERS": "p,q", "INSECURE": "true"}
	if got := full.variables("etc"); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if got := (clusterContext{}).variables("etc"); len(got) > 0 {
		t.Errorf("an empty context sets %v", got)
	}
}

// A flag replaces the variable of a context, and one that chooses another kind of security all of
// that context's security.
func TestWhatAFlagReplaces(t *testing.T) {
	t.Setenv("X_CLUSTER", "same")
	for flag, want := range map[string]string{
		"": "CLUSTER JOIN SECRET_FILE", "NAME": "CLUSTER JOIN SECRET_FILE", "JOIN": "CLUSTER SECRET_FILE",
		"SECRET_FILE": "CLUSTER JOIN", "INSECURE": "CLUSTER JOIN", "TLS_CA_FILE": "CLUSTER JOIN",
	} {
		c := &call{prefix: "X", changed: map[string]string{}}
		if flag != "" {
			c.changed[flag] = "flag"
		}
		all := map[string]string{"JOIN": "a:1", "CLUSTER": "same", "SECRET_FILE": "s"}
		if err := c.apply("x", all); err != nil {
			t.Fatal(err)
		}
		for name, value := range all {
			is := c.changed[name] == value
			if wants := strings.Contains(" "+want+" ", " "+name+" "); is != wants {
				t.Errorf("with the flag for %q, %s is that of the context: %v", flag, name, is)
			}
		}
	}
}

func TestWhatAWishMayNotJoin(t *testing.T) {
	zero, one := 0.0, 1.0
	full := asked{Key: "k", Mode: mortise.Shared, Tree: true, Also: []mortise.Part{{Key: "z"}}, Value: "v",
		Labels: map[string]string{"l": "x"}, MaxWaiting: 2, Notice: true}
	want := wish{Request: mortise.Request{Key: "k", Mode: mortise.Shared, Tree: true, Also: full.Also, Value: "v",
		Labels: full.Labels, MaxWaiting: 2, Notice: true}}
	if got, err := full.wish(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for what, c := range map[string]struct {
		a   asked
		bad bool
	}{
		"sticky, shared":      {asked{Sticky: true, Mode: mortise.Shared, Notice: true, Wait: &zero}, false},
		"sticky, upgradable":  {asked{Sticky: true, Mode: mortise.Upgradable}, true},
		"sticky, tree":        {asked{Sticky: true, Tree: true}, true},
		"sticky, several":     {asked{Sticky: true, Also: full.Also}, true},
		"sticky, max_waiting": {asked{Sticky: true, MaxWaiting: 1}, true},
		"sticky, max_hold":    {asked{Sticky: true, MaxHold: &one}, true},
		"sticky, max_idle":    {asked{Sticky: true, MaxIdle: &one}, true},
		"sticky, grace":       {asked{Sticky: true, Grace: &one}, true},
		"sticky, delay":       {asked{Sticky: true, LockDelay: &one}, true},
		"sticky, resume":      {asked{Sticky: true, Resume: 1}, true},
		"sticky, value":       {asked{Sticky: true, Value: "v"}, true},
		"sticky, labels":      {asked{Sticky: true, Labels: full.Labels}, true},
		"resume": {asked{Resume: 1, MaxHold: &one, MaxIdle: &one, Grace: &one, LockDelay: &one, Value: "v", Wait: &one},
			false},
		"resume, tree":         {asked{Resume: 1, Tree: true}, true},
		"resume, several":      {asked{Resume: 1, Also: full.Also}, true},
		"resume, shared":       {asked{Resume: 1, Mode: mortise.Shared}, true},
		"resume, max_waiting":  {asked{Resume: 1, MaxWaiting: 1}, true},
		"resume, without wait": {asked{Resume: 1, Wait: &zero}, true},
	} {
		got, err := c.a.wish()
		if errors.Is(err, mortise.ErrBadRequest) != c.bad || got.sticky != c.a.Sticky || got.resume != c.a.Resume {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

func TestSpansOfSeconds(t *testing.T) {
	seconds := func(s float64) *float64 { return &s }
	for _, c := range []struct {
		seconds *float64
		want    time.Duration
		bad     bool
	}{
		{nil, 7, false}, {seconds(0), 0, false}, {seconds(1.5), 1500 * time.Millisecond, false}, {seconds(-1), 0, true},
		{seconds(4e9), 4e9 * time.Second, false}, {seconds(5e9), 0, true},
	} {
		if got, err := span("wait_seconds", c.seconds, 7); got != c.want || (err != nil) != c.bad {
			t.Errorf("%v: %v, %v", c.seconds, got, err)
		}
	}
}

// Each answer of the door says what it is, and one without a token how to send one.
func TestEachAnswerSaysWhatItIs(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	allowed, err := (&call{}).readTokens("", token)
	if err != nil {
		t.Fatal(err)
	}
	open, _ := doorTo(t, nil)
	closed, _ := doorTo(t, allowed)
	const basic = `Basic realm="a token of this agent, as the password"`
	for _, c := range []struct {
		url, kind, challenge string
		code                 int
	}{
		{open.URL + "/metrics", "text/plain; version=0.0.4; charset=utf-8", "", 200},
		{open.URL + "/console/", "text/html; charset=utf-8", "", 200},
		{open.URL + "/console/status.json", "application/json", "", 200},
		{open.URL + "/v1/watch?after=0", "application/x-ndjson", "", 200},
		{open.URL + "/v1/watch?after=x", "application/json", "", 400},
		{open.URL + "/v1/hold", "application/x-ndjson", "", 200},
		{open.URL + "/v1/nothing", "application/json", "", 404},
		{open.URL + "/v1/status", "application/json", "", 200},
		{open.URL + "/v1/status?authorized", "application/json", "Bearer", 401},
		{closed.URL + "/v1/status", "application/json", "Bearer", 401},
		{closed.URL + "/metrics", "application/json", "Bearer", 401},
		{closed.URL + "/console/", "application/json", basic, 401},
	} {
		method, body := http.MethodGet, ""
		if strings.HasSuffix(c.url, "/v1/hold") {
			method, body = http.MethodPost, `{"name":"shop"}`
		}
		r, err := http.NewRequestWithContext(t.Context(), method, c.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if strings.HasSuffix(c.url, "?authorized") {
			r.Header.Set("Authorization", "Bearer misspelt")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.code || answer.Header.Get("Content-Type") != c.kind ||
			answer.Header.Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: %s, %v, want %d, %s, %q", c.url, answer.Status, answer.Header, c.code, c.kind, c.challenge)
		}
	}
}
