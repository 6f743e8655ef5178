//go:build unix

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// The whole output is compared. It must name the missing flag and its variable.
func TestMistakesAtTheCommandLine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node, err := mortise.Start(ctx, mortise.Config{
		Name: "a", Bind: "127.0.0.1:0", JoinFunc: func(context.Context) ([]string, error) { return nil, nil },
		Replicas: 1, Secret: testSecret,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	at := node.Status().Address
	t.Setenv("ORDERS_LOCK_JOIN", at)
	t.Setenv("ORDERS_LOCK_SECRET", testSecret)
	const secret = "the instance has a secret, and this program was given none: give the cluster's secret " +
		"(-secret-file, or MORTISE_SECRET) " +
		"or certificates (-tls-cert and so on)"
	const doctor = "\nRun mortise doctor with the same flags: it says why, and what to do.\n"
	for name, tc := range map[string]struct {
		args string
		code int
		want string
	}{
		"nowhere": {"get x", exitUsage,
			"mortise get: where is the cluster? Name an instance with -join host:port, or set MORTISE_JOIN\n"},
		"nowhere, a service": {"get x -env-prefix BILLS", exitUsage,
			"mortise get: where is the cluster? Name an instance with -join host:port, or set BILLS_JOIN\n"},
		"no secret": {"get x -join AT", exitNotReady,
			"mortise get: the group cannot answer now: no instance answers: AT: " + secret + doctor},
		"no secret, doctor": {"doctor -join AT", exitNo, "trouble: no instance answers\n  AT: foreign: AT: " +
			secret + "\nnext safe step:\n" +
			"  1. give this command the secret (or certificates) and the cluster label of the instances: they reject " +
			"what it has now\n" +
			"asked:\n  AT (by AT): foreign\n"},
		"no secret, another machine": {"get x -join 192.0.2.1:7947 -timeout 1s", exitNotReady,
			"mortise get: the group cannot answer now: no instance answers: " +
				"192.0.2.1:7947: it is on another machine and nothing protects the connection: " +
				"give the cluster's secret (-secret-file, or MORTISE_SECRET) or certificates (-tls-cert and so on), or " +
				"-insecure if it has neither" + doctor},
		"no such group, and an ID without its leading zero": {"recover 123456789abcdef -env-prefix ORDERS_LOCK",
			exitFailed,
			"mortise recover: no instance that answers belongs to group 0123456789abcdef; nothing was done\n"},
		"no ID": {"recover orders -env-prefix ORDERS_LOCK", exitUsage,
			`mortise recover: "orders" is not a group ID; mortise doctor shows the ID` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MORTISE_JOIN", "") // a flag can make Main set this variable; Setenv restores it
			var out, errs bytes.Buffer
			code := Main(ctx, strings.Fields(strings.ReplaceAll(tc.args, "AT", at)), &out, &errs)
			if text := strings.ReplaceAll(out.String()+errs.String(), at, "AT"); code != tc.code || text != tc.want {
				t.Errorf("exit code %d, want %d; it says\n%s\nwant\n%s", code, tc.code, text, tc.want)
			}
		})
	}
	t.Run("the variables of a service", func(t *testing.T) {
		var out, errs bytes.Buffer
		if code := Main(ctx, []string{"status", "-env-prefix", "ORDERS_LOCK"}, &out, &errs); code != exitOK ||
			!strings.Contains(out.String(), at) {
			t.Errorf("exit code %d; it says\n%s%s", code, out.String(), errs.String())
		}
	})
}
