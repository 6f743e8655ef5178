package mortise

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestNoSecretIsPrinted(t *testing.T) {
	const secret, old, key = "k1XcWmTq8Zr0sYb4uN7dQh5Ve2Rg9JyB", "Vp3hGf9oLj2aEw6iKx5mTz8Sc4Xn7DuP", "KEY-7h2Qz9"
	c := Config{Name: "a", Secret: secret, OldSecrets: []string{old}, Grace: -1, Logger: slog.New(slog.DiscardHandler)}
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	withTLS := Config{Name: "a", TLS: &tls.Config{Certificates: []tls.Certificate{{PrivateKey: key,
		Certificate: [][]byte{[]byte(key)}}}}}
	type holder struct {
		Config  Config
		Pointer *Config
		Node    *Node
	}
	type inner struct {
		node *Node // fmt prints only its address
	}
	printed := func(text string) {
		t.Helper()
		for _, word := range []string{secret, old, key, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", old),
			fmt.Sprint([]byte(secret)), fmt.Sprintf("%x", key)} {
			if strings.Contains(text, word) {
				t.Errorf("%q is printed: %s", word, text)
			}
		}
	}
	for _, v := range []any{c, &c, withTLS, &withTLS, n, holder{c, &c, n}, &holder{c, &c, n}, inner{n}, []Config{c},
		map[string]Config{"c": c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%T"} {
			if _, hidden := v.(inner); hidden && (verb == "%s" || verb == "%q") {
				continue // fmt prints the fields of the node; see below
			}
			printed(fmt.Sprintf(verb, v))
		}
		for name, make := range map[string]func(*bytes.Buffer) slog.Handler{
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var b bytes.Buffer
			slog.New(make(&b)).Info("starts", "value", v)
			if printed(b.String()); b.Len() == 0 {
				t.Errorf("%s: nothing is logged", name)
			}
		}
	}
	if text := fmt.Sprintf("%+v", c); !strings.Contains(text, "Secret:[redacted] OldSecrets:[[redacted]]") ||
		!strings.Contains(text, "Name:a") {
		t.Errorf("%s", text)
	}
	if c.Secret != secret || c.OldSecrets[0] != old {
		t.Error("printing has changed the configuration")
	}
	if n.config.Secret != "" || len(n.config.OldSecrets) != 0 {
		t.Error("the node keeps the secret")
	}
}
