//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
)

func TestDerivedSecretsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	rights, err := capability.Build("cron-host", time.Time{}, "lock cron/*", "read cron/*")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credentials.DeriveSecret(testSecret, "mortise", rights.Text())
	if err != nil {
		t.Fatal(err)
	}
	f.common = append(f.common, "SECRET="+secret)
	f.mortise("run", "cron/1", "--", "true").wants(t, exitOK)
	f.mortise("ls", "cron/").wants(t, exitOK)
	f.mortise("get", "cron/1").wants(t, exitOK)
	for _, denied := range [][]string{
		{"run", "other", "--", "echo", "never"}, {"ls"}, {"get", "other"}, {"audit"}, {"members"}, {"status"},
		{"doctor"}, {"watch", "other"},
		{"unlock", "--force", "cron/1", "--token", "1", "--reason", "r"},
	} {
		f.mortise(denied...).wants(t, exitDenied, "not allowed", `"cron-host"`)
	}
}
