package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The answers to made-up secrets are rendered once, and few of them are kept.
func TestRefusalsAreRenderedOnce(t *testing.T) {
	s := strangers{all: map[string]*rendered{}}
	say := func(err error) (int, string) {
		w := httptest.NewRecorder()
		s.refuse(w, err)
		return w.Code, w.Body.String()
	}
	foreign := fmt.Errorf("%w: mortise: another authority", errBadSecret)
	code, text := say(foreign)
	plain := httptest.NewRecorder()
	refuse(plain, foreign)
	if code != http.StatusUnauthorized || text != plain.Body.String() || !strings.Contains(text, "another authority") {
		t.Errorf("%d %s, want %s", code, text, plain.Body)
	}
	s.all[foreign.Error()].text = []byte("kept")
	if _, text := say(foreign); text != "kept" {
		t.Errorf("rendered again: %s", text)
	}
	for n := range 3 * maxRefusals {
		if code, text := say(fmt.Errorf("%w: %d", errBadSecret, n)); code != http.StatusUnauthorized ||
			!strings.Contains(text, fmt.Sprint(n)) {
			t.Errorf("%d %s", code, text)
		}
	}
	if len(s.all) > maxRefusals {
		t.Errorf("%d answers are kept", len(s.all))
	}
}

func BenchmarkRefusal(b *testing.B) {
	s := strangers{all: map[string]*rendered{}}
	err := errors.Join(errBadSecret)
	for name, say := range map[string]func(http.ResponseWriter, error){"kept": s.refuse, "rendered": refuse} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				say(httptest.NewRecorder(), err)
			}
		})
	}
}
