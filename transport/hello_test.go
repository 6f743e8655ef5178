package transport

import (
	"errors"
	"strings"
	"testing"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Who is refused, and what the refused one makes of it.
func TestHellos(t *testing.T) {
	self := Identity{Cluster: "test", Instance: 1, Group: 7, Raft: 101, Addr: "a:1"}
	good := func(change func(*wire.Hello)) *wire.Hello {
		h := Identity{Cluster: "test", Instance: 2, Addr: "b:1"}.greet(1, 3)
		change(h)
		return h
	}
	cases := []struct {
		why    string
		hello  *wire.Hello
		reason wire.Refusal_Reason
		err    error
	}{
		{"all is well", good(func(*wire.Hello) {}), wire.Refusal_NONE, nil},
		{"for whoever is there", good(func(h *wire.Hello) { h.Intended = 0 }), wire.Refusal_NONE, nil},
		{"from another group", good(func(h *wire.Hello) { h.Group = 9 }), wire.Refusal_NONE, nil},
		{"none", nil, wire.Refusal_MALFORMED, ErrGarbage},
		{"empty", &wire.Hello{}, wire.Refusal_CLUSTER, ErrForeign},
		{"another label", good(func(h *wire.Hello) { h.Cluster = "other" }), wire.Refusal_CLUSTER, ErrForeign},
		{"another label and version", good(func(h *wire.Hello) { h.Cluster, h.Version = "other", 2 }), wire.Refusal_CLUSTER, ErrForeign},
		{"another version", good(func(h *wire.Hello) { h.Version = 2 }), wire.Refusal_VERSION, ErrVersion},
		{"another version for another instance", good(func(h *wire.Hello) { h.Version, h.Intended = 2, 5 }), wire.Refusal_VERSION, ErrVersion},
		{"for another instance", good(func(h *wire.Hello) { h.Intended = 5 }), wire.Refusal_INSTANCE, ErrOther},
		{"from nobody", good(func(h *wire.Hello) { h.Instance = 0 }), wire.Refusal_MALFORMED, ErrGarbage},
		{"absurd address", good(func(h *wire.Hello) { h.Addr = strings.Repeat("x", 1000) }), wire.Refusal_MALFORMED, ErrGarbage},
		{"absurd label", good(func(h *wire.Hello) { h.Cluster = strings.Repeat("x", 1<<20) }), wire.Refusal_CLUSTER, ErrForeign},
	}
	for _, c := range cases {
		r := self.refuse(c.hello)
		if r.GetReason() != c.reason {
			t.Errorf("%s: got %v", c.why, r)
		}
		if len(r.GetText()) > 1000 {
			t.Errorf("%s: a refusal of %d bytes", c.why, len(r.GetText()))
		}
		if r == nil {
			continue
		}
		err := refused("a:1", 5, r)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), "a:1") {
			t.Errorf("%s: %v, want %v and the address", c.why, err, c.err)
		}
		if other, ok := errors.AsType[*OtherError](err); ok && (other.Asked != 5 || other.Answered != 1) {
			t.Errorf("%s: %+v", c.why, other)
		}
	}
}

func TestHelloCarriesTheIdentity(t *testing.T) {
	want := Identity{Cluster: "test", Instance: 1, Group: 7, Raft: 101, Addr: "a:1"}
	if got := identity(want.greet(2, 3)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A refusal of a kind that a later version adds is no proof of anything.
func TestUnknownRefusalIsSilence(t *testing.T) {
	if err := refused("a:1", 0, &wire.Refusal{Reason: 99, Text: "new"}); !errors.Is(err, ErrSilent) {
		t.Error(err)
	}
}
