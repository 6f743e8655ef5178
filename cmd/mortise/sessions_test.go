//go:build unix

package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	defer f.begin("exec sleep 1000", "-name", "holder", "orders/1").end()
	waits := f.command("run", "-name", "waiter", "orders/1", "--", "true")
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = waits.Process.Kill(); _ = waits.Wait() }()
	f.waiting("orders/1", 1)

	s := f.mortise("sessions", "-o", "json").wants(t, exitOK)
	type read struct {
		Session, Name string
		Instance      string
		Since         time.Time
		TTL           float64  `json:"ttl_seconds"`
		Left          float64  `json:"left_seconds"`
		Silent        *float64 `json:"silent_seconds"`
		Held, Waiting int
	}
	seen := map[string]read{}
	for line := range strings.Lines(s.out) {
		var one read
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		seen[one.Name] = one
		if one.TTL <= 0 || one.Session == "" || time.Since(one.Since) < 0 || time.Since(one.Since) > time.Hour {
			t.Errorf("%s", line)
		}
		if one.Silent != nil && (*one.Silent < 0 || *one.Silent+one.Left > one.TTL+0.001) {
			t.Errorf("%s", line)
		}
	}
	if len(seen) != 5 || seen["holder"].Held != 1 || seen["holder"].Waiting != 0 || seen["waiter"].Held != 0 ||
		seen["waiter"].Waiting != 1 || seen["a"].Instance == "" || seen["holder"].Instance != "" {
		t.Errorf("%+v", seen)
	}
	if table := f.mortise("sessions").wants(t,
		exitOK).out; !regexp.MustCompile(`(?m)^holder +[0-9]+ +[0-9hms]+ +5s +[0-9.ms-]+ +1 +0 +-$`).MatchString(table) {
		t.Errorf("holder has no such row in\n%s", table)
	}
	first := f.mortise("sessions", "-n", "2").wants(t, exitOK, "the next: mortise sessions -after ")
	behind := regexp.MustCompile(`-after ([0-9]+)`).FindStringSubmatch(first.out)[1]
	rest := f.mortise("sessions", "-after", behind, "-o", "json").wants(t, exitOK)
	if n := strings.Count(rest.out, "\n"); n != 3 {
		t.Errorf("%d sessions behind the second of 5:\n%s", n, rest.out)
	}
	f.mortise("sessions", "-after", "x").wants(t, exitUsage)
	f.mortise("sessions", "x").wants(t, exitUsage)
}
