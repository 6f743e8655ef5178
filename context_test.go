package mortise

import (
	"errors"
	"testing"
	"time"
)

// Permits never cover a request, because other requests may hold permits of the same key.
func TestWhatALockCovers(t *testing.T) {
	n := alone(t, Config{})
	held := map[string]Request{
		"exclusive": {Key: "k"},
		"shared":    {Key: "k", Shared: true},
		"a permit":  {Key: "k", Permits: 1, Of: 3},
		"two keys":  {Keys: []string{"k", "l"}},
	}
	asked := map[string]Request{
		"exclusive":            {Key: "k"},
		"shared":               {Key: "k", Shared: true},
		"a permit":             {Key: "k", Permits: 1, Of: 3},
		"one of the keys":      {Keys: []string{"k"}},
		"both keys":            {Keys: []string{"k", "l"}},
		"a key of no lock":     {Key: "m"},
		"a key beside it":      {Keys: []string{"k", "m"}},
		"a second life's":      {Key: "k", Resume: 1},
		"a MaxHold of its own": {Key: "k", MaxHold: time.Hour},
	}
	enters := map[[2]string]bool{
		{"exclusive", "exclusive"}: true, {"exclusive", "shared"}: true, {"exclusive", "one of the keys"}: true,
		{"exclusive", "a MaxHold of its own"}: true,
		{"shared", "shared"}:                  true,
		{"two keys", "exclusive"}:             true, {"two keys", "shared"}: true, {"two keys", "one of the keys"}: true,
		{"two keys", "both keys"}:            true,
		{"two keys", "a MaxHold of its own"}: true,
	}
	for have, first := range held {
		for want, second := range asked {
			l, err := n.Acquire(t.Context(), first)
			if err != nil {
				t.Fatal(have, err)
			}
			second.Try = second.Resume == 0
			again, err := n.Acquire(l.Context(t.Context()), second)
			entered := err == nil && again.Token() == l.Token()
			if entered != enters[[2]string{have, want}] {
				t.Errorf("under %s, %s: entered again: %v, %v", have, want, entered, err)
			}
			if err == nil {
				err = again.Unlock(t.Context())
			} else {
				err = nil
			}
			if err := errors.Join(err, l.Unlock(t.Context())); err != nil {
				t.Errorf("under %s, %s: %v", have, want, err)
			}
		}
	}
}
