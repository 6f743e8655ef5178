//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSecret(t *testing.T) {
	f := &fleet{t: t}
	a, b := f.mortise("secret").wants(t, exitOK, "msk1_"), f.mortise("secret").wants(t, exitOK, "msk1_")
	if a.out == b.out || a.errs != "" || strings.Count(a.out, "\n") != 1 {
		t.Errorf("%q %q", a.out, b.out)
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(a.out), 0o600); err != nil {
		t.Fatal(err)
	}
	from := []string{"secret", "-secret-file", path, "-for", "cron-host"}
	guest := f.mortise(append(from, "-allow", "lock cron/*", "-allow", "read cron/*", "-until", "720h")...).wants(t,
		exitOK, "for cron-host", "until 20", "lock cron/*\n  read cron/*")
	if !strings.HasPrefix(guest.out, "msd1_") || strings.Count(guest.out, "\n") != 1 ||
		strings.Contains(guest.errs, a.out[5:20]) {
		t.Errorf("%q", guest.out)
	}
	f.mortise(append(from, "-member", "-o", "json")...).wants(t, exitOK, `{"secret":"msd1_`,
		`"capability":"mortise-capability/1\nfor cron-host\nmember\n"}`)
	f.common = []string{"SECRET=" + strings.TrimSpace(guest.out), "JOIN=127.0.0.1:1"}
	f.mortise("secret", "-allow", "lock *", "-for", "x").wants(t, exitUsage, "only a root secret can derive others")
	f.mortise("ls", "-timeout", "100ms").wants(t, exitNotReady)
	f.mortise("agent", "-listen", "unix:"+filepath.Join(t.TempDir(), "s"), "-founders", "a,b,c").wants(t, exitUsage,
		"a guest's secret cannot start an instance")
	f.common = nil
	for _, c := range []struct {
		want string
		args []string
	}{
		{"the root secret is missing", []string{"-allow", "lock a", "-for", "x"}},
		{"-for is missing", []string{"-allow", "lock a"}},
		{"-for and -until belong to a derived secret", []string{"-for", "x"}},
		{"a right is one of", []string{"-allow", "take a", "-for", "x"}},
		{"a pattern is a key", []string{"-allow", "lock a*b", "-for", "x"}},
		{"has passed", []string{"-allow", "lock a", "-for", "x", "-until",
			time.Now().Add(-time.Hour).Format(time.RFC3339)}},
		{"is neither a time, like", []string{"-allow", "lock a", "-for", "x", "-until", "soon"}},
		{"too many words", []string{"-allow", "lock", "a", "-for", "x"}},
		{"member includes", []string{"-member", "-allow", "lock a", "-for", "x"}},
	} {
		f.mortise(append([]string{"secret"}, c.args...)...).wants(t, exitUsage, c.want)
	}
}

func TestGuestsOfARealFleet(t *testing.T) {
	f := startFleet(t, false, "a")
	secret := f.mortise("secret", "-allow", "read *", "-for", "laptop").wants(t, exitOK, "msd1_")
	guest := f.in(t)
	guest.common = []string{"JOIN=file://" + f.peers, "SECRET=" + strings.TrimSpace(secret.out), "SESSION_TTL=5s"}
	guest.mortise("status").wants(t, exitOK, "a")
	guest.common = append(guest.common, "CLUSTER=elsewhere")
	guest.mortise("status").wants(t, exitUsage, "was derived for another cluster than")
}
