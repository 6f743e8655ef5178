//go:build unix

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// What a command line does not say is asked for by its flag and its variable.
func TestWhereTheClusterIs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node, err := mortise.Start(ctx, mortise.Config{
		Name: "a", Bind: "127.0.0.1:0", JoinFunc: func(context.Context) ([]string, error) { return nil, nil }, Replicas: 1, Secret: testSecret,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	at := node.Status().Address
	t.Setenv("ORDERS_LOCK_JOIN", at)
	t.Setenv("ORDERS_LOCK_SECRET", testSecret)
	for name, tc := range map[string]struct {
		args, want string
		code       int
	}{
		"nowhere":            {"get x", "Name an instance with -join host:port, or set MORTISE_JOIN", exitUsage},
		"no secret":          {"get x -join " + at, "the instance has a secret, and this program was given none: give the cluster's secret (-secret-file, or MORTISE_SECRET) or certificates (-tls-cert and so on)", exitNotReady},
		"no secret, doctor":  {"doctor -join " + at, "give this command the secret (or certificates) and the cluster label of the instances", exitNo},
		"elsewhere":          {"get x -join 192.0.2.1:7947 -timeout 1s", "(-secret-file, or MORTISE_SECRET)", exitNotReady},
		"a service's own":    {"status -env-prefix ORDERS_LOCK", at, exitOK},
		"nowhere, a service": {"get x -env-prefix BILLS", "or set BILLS_JOIN", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MORTISE_JOIN", "") // Main sets what flags say
			var out, errs bytes.Buffer
			code := Main(ctx, strings.Fields(tc.args), &out, &errs)
			if text := out.String() + errs.String(); code != tc.code || !strings.Contains(text, tc.want) {
				t.Errorf("exit code %d, want %d; it says\n%s", code, tc.code, text)
			}
		})
	}
}
