package mortise

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
)

const (
	secretA = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"
	secretB = "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0"
)

func derived(t *testing.T, words ...string) string {
	t.Helper()
	c, err := capability.Build("cron-host", time.Time{}, words...)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credentials.DeriveSecret(secretA, "mortise", c.Text())
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
func TestSecurityMistakesNameTheField(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Secret: "short"}, "Config.Secret: 5 bytes are too few"},
		{Config{Secret: secretA, Insecure: true}, "not several"},
		{Config{OldSecrets: []string{secretA}}, "Config.OldSecrets: is set without Secret"},
		{Config{Secret: secretA, OldSecrets: []string{"x"}}, "Config.OldSecrets[0]"},
		{Config{TLSFiles: TLSFiles{Cert: "nowhere.pem", Key: "nowhere.pem", CA: "nowhere.pem"}}, "nowhere.pem"},
		{Config{TLSFiles: TLSFiles{Cert: "nowhere.pem", Key: "nowhere.pem", CA: "nowhere.pem"}},
			"Config.TLSPeers: is empty"},
		{Config{TLS: &tls.Config{}}, "Config.TLSPeers: is empty"},
		{Config{Secret: "correct horse battery staple"}, "Config.Secret: can be guessed: it is estimated at"},
	} {
		if _, err := Start(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error that says %q", err, c.want)
		} else if strings.Contains(err.Error(), secretA) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func TestDerivedSecretsAtStart(t *testing.T) {
	guest, member := derived(t, "lock cron/*"), derived(t, "member")
	join := []string{"127.0.0.1:1"}
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"a guest": {Config{Secret: guest, Join: join, Founders: []string{"a"}},
			"Config.Secret: a guest's secret cannot start an instance"},
		"a guest alone": {Config{Secret: guest}, "Config.Secret: a guest's secret"},
		"a member founds": {Config{Name: "a", Secret: member, Join: join, Founders: []string{"a", "b"}},
			`Config.Founders: names this instance, "a"`},
		"a member among replicas": {Config{Secret: member, Join: join, Replicas: 3},
			"Config.Replicas: is set together with a member's secret"},
		"a member alone": {Config{Secret: member}, "Config.Join: is empty, but with a member's secret"},
		"derived old secrets": {Config{Secret: secretA, OldSecrets: []string{member}},
			"Config.OldSecrets[0]: is a derived secret"},
		"names without certificates": {Config{Secret: secretA, TLSPeers: []string{"a"}},
			"Config.TLSPeers: TLSPeers and TLSGuests need TLS or TLSFiles"},
	} {
		_, err := Start(t.Context(), c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), guest[:40]) || strings.Contains(err.Error(), member[:40]) {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
		if guest := c.config.Secret == guest; guest != (err != nil && strings.Contains(err.Error(),
			"a guest's secret cannot start an instance")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := Config{Name: "c", Secret: member, Join: join, Founders: []string{"a", "b"}}
	if err := good.withDefaults().validate(); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := Config{Secret: secretA, OldSecrets: []string{secretB}, Name: "orders-0"}
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "pointer", &c, "in", struct{ C Config }{c})
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{c, &c, []Config{c}, struct{ Inside Config }{c}, n.config, &n.config} {
			fmt.Fprintf(&log, verb, value)
		}
	}
	// This is how fmt prints a Config in a Node.
	fmt.Fprintf(&log, "%+v %#v", struct{ c Config }{n.config}, struct{ c Config }{n.config})
	for _, secret := range []string{secretA, secretB} {
		if strings.Contains(log.String(), secret) || strings.Contains(log.String(), fmt.Sprintf("%x", secret)) {
			t.Error("a secret is printed")
		}
	}
	if !strings.Contains(fmt.Sprint(c), "orders-0") || !strings.Contains(fmt.Sprintf("%+v", c), "Secret:[redacted]") {
		t.Errorf("%+v", c)
	}
}
