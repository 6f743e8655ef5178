package credentials

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestNothingSecretIsPrinted(t *testing.T) {
	cfg := SecretConfig{Secret: secretA, Old: []string{secretB}, Cluster: "orders"}
	s := source(t, cfg)
	a, err := newAuthority(secretA, "orders")
	if err != nil {
		t.Fatal(err)
	}
	var forbidden []string
	for _, bytes := range [][]byte{[]byte(secretA), []byte(secretB), a.key.Seed()} {
		list := fmt.Sprint(bytes[5:])
		forbidden = append(forbidden, string(bytes[5:13]), fmt.Sprintf("%x", bytes[5:13]),
			fmt.Sprintf("%X", bytes[5:13]), strings.Trim(list, "[]")[:20])
	}
	look := func(how, text string) {
		for _, word := range forbidden {
			if strings.Contains(text, word) {
				t.Errorf("%s prints a secret: %s", how, text)
			}
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%o", "%T %v"} {
		for _, value := range []any{s, *s, cfg, &cfg, struct{ Inside any }{s}, struct{ Inside SecretConfig }{cfg},
			[]*Source{s}} {
			args := []any{value, value}
			look(fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, args[:strings.Count(verb, "%")]...))
		}
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("start", "source", s, "config", cfg, "pointer", &cfg, "inside",
			struct{ Inside any }{cfg}, "tls", s.ServerTLS())
	}
	look("slog", log.String())
	if text, err := json.Marshal(s); err == nil {
		look("json", string(text))
	}
	if text, err := json.Marshal(cfg); err == nil {
		look("json", string(text))
	}
	if got := fmt.Sprint(s); !strings.Contains(got, a.id()) {
		t.Errorf("%q does not name the authority %s, by which people compare two nodes", got, a.id())
	}
	if got := fmt.Sprint((*Source)(nil)); got != "no credentials" {
		t.Error(got)
	}
}
