package election

import (
	"context"
	"testing"

	"github.com/mortise-lock/mortise"
)

// TestStands checks contexts under no leadership, under one and under two: a context stands under
// the tokens of its leaderships, and under no other.
func TestStands(t *testing.T) {
	under := func(tokens ...mortise.Token) context.Context {
		ctx := t.Context()
		for _, token := range tokens {
			ctx = context.WithValue(ctx, placeKey{}, &place{token: token, outer: placeOf(ctx)})
		}
		return ctx
	}
	for _, tokens := range [][]mortise.Token{nil, {5}, {5, 6}, {6, 5}} {
		for token := mortise.Token(4); token < 8; token++ {
			want := false
			for _, outer := range tokens {
				want = want || outer == token
			}
			if stands(under(tokens...), token) != want {
				t.Errorf("under %v, token %d: %v", tokens, token, !want)
			}
		}
	}
}
