package lockfsm

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPrefixesCoverWhatOneOfThemBegins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, rng.IntN(5))
		for i := range b {
			b[i] = "ab\x00\xff"[rng.IntN(4)]
		}
		return string(b)
	}
	for range 20_000 {
		var of []string
		for range rng.IntN(6) {
			of = append(of, word())
		}
		key := word()
		want := slices.ContainsFunc(of, func(each string) bool { return strings.HasPrefix(key, each) })
		if got := NewPrefixes(of...).Cover(key); got != want {
			t.Fatalf("%q covers %q: %v, want %v", of, key, got, want)
		}
	}
}
