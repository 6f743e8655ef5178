//go:build unix

package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
)

// A queue of a listed key shows three requests, so more than three readers need further questions.
func TestUnlockAll(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	a := f.agents[0]
	var lease struct{ Lease string }
	a.post(t, "/v1/leases", object{"ttl_seconds": 60}, &lease)
	take := func(key string, mode mortise.Mode) {
		t.Helper()
		var lock lockText
		if code := a.post(t, "/v1/lock", object{"lease": lease.Lease, "key": key, "mode": mode},
			&lock); code != http.StatusOK {
			t.Fatal(key, code)
		}
	}
	for i := range 5 {
		take(fmt.Sprint("jobs/", i), mortise.Exclusive)
		take("jobs/shared", mortise.Shared)
	}
	take("other", mortise.Exclusive)
	all := []string{"unlock", "--force", "jobs/", "--all", "--reason", "the host is gone"}
	f.mortise(append(all, "--token", "7")...).wants(t, exitUsage, "--all ends every hold")
	f.mortise("unlock", "--force", "--all", "--reason", "x").wants(t, exitUsage, "which key?")

	rights, err := capability.Build("on-call", time.Time{}, "read jobs/*", "force jobs/0")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credentials.DeriveSecret(testSecret, "mortise", rights.Text())
	if err != nil {
		t.Fatal(err)
	}
	whole := f.common
	f.common = append(f.common[:len(f.common):len(f.common)], "SECRET="+secret)
	f.mortise(all...).wants(t, exitDenied, "jobs/0: the hold with token", "not allowed", "(1 holds have ended;")
	f.common = whole

	f.mortise(all...).wants(t, exitOK, "jobs/4: the hold with token", "9 holds have ended")
	f.mortise(all...).wants(t, exitNo, "nothing was ended")
	f.mortise("get", "other").wants(t, exitOK, "holds")
	f.mortise("audit").wants(t, exitOK, "jobs/shared", "the host is gone")
}
