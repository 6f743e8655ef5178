package e2e

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

func TestLabelsAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		labels := map[string]string{"job": "nightly", "host": "a\x00b\u00e4"}
		for i, value := range []string{"", "v", "\x00", "\x00{}", "\xff\x00"} {
			for _, labels := range []map[string]string{nil, labels} {
				l := f.acquire(0, mortise.Request{Key: "k", Value: value, Labels: labels})
				st := f.peek(1, "k").Queue[0]
				if st.Value != value || !maps.Equal(st.Labels, labels) {
					t.Errorf("%d: %q, %v", i, st.Value, st.Labels)
				}
				var held *mortise.HeldError
				if _, err := f.nodes[2].TryLock(t.Context(), "k"); !errors.As(err, &held) || held.Value != value ||
					!maps.Equal(held.Labels, labels) {
					t.Errorf("%d: %v", i, err)
				}
				unlock(t, l)
			}
		}
		_, err := f.nodes[0].Acquire(t.Context(), mortise.Request{Key: "k", Value: strings.Repeat("x", 1000),
			Labels: labels})
		wantIs(t, err, mortise.ErrBadRequest)
	})
}
