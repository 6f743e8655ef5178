package mortise

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// A mark is stored whole or not at all.
func TestAMarkAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxMarkBytes", maxMarkBytes, func(n int) bool {
		var s client.Request
		new(demand).mark(make([]byte, n), &s)
		return s.Terms != nil && len(shown.MarkOf(s.Terms.Value)) == n
	})
}

// A page of the leader may be shorter than others, so the last one may go beyond the limit.
func TestListsAtTheirBounds(t *testing.T) {
	for _, page := range []int{100, 99, 7} {
		limits.AtMost(t, "maxSessions", maxSessions, func(n int) bool {
			all, err := firstSessions(func(q *query.PageRequest) (*query.SessionList, error) {
				began := int(q.From.GetAt())
				size := min(page, n-began)
				return &query.SessionList{Sessions: make([]*query.Session, size), More: began+size < n,
					From: &query.SessionCursor{At: uint64(began + size)}}, nil
			})
			return err == nil && len(all) == n
		})
	}
	for _, starts := range []int{1, 2} {
		limits.AtMost(t, "maxBegin", maxBegin, func(n int) bool {
			events, position, err := presentState(func(yield func(Event, error) bool) {
				for range starts {
					yield(Event{Kind: EventReset}, nil)
					for range n {
						if !yield(Event{Kind: EventHeld}, nil) {
							return
						}
					}
				}
				yield(Event{Kind: EventCurrent, Position: 7}, nil)
			})
			return err == nil && len(events) == n+2 && position == 7
		})
	}
}

// Labels and Value have room together, and each rule for a key has its text.
func TestRequestsAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "MaxValueBytes", lockfsm.MaxValueBytes, func(n int) bool {
		r := Request{Key: "k", Value: "v", Labels: map[string]string{"l": ""}}
		r.Labels["l"] = strings.Repeat("x", n-len(shown.Encode(r.Value, r.Labels, nil)))
		return r.validate() == nil
	})
	limits.AtMost(t, "MaxValueBytes", lockfsm.MaxValueBytes, func(n int) bool {
		return (&Request{Key: "k", Value: strings.Repeat("v", n)}).validate() == nil
	})
	zero := Request{Key: "k", Value: "\x00" + strings.Repeat("v", lockfsm.MaxValueBytes-1)} // is not stored as itself
	if err := zero.validate(); !errors.Is(err, ErrBadRequest) {
		t.Errorf("a value of %d bytes that begins with a zero: %v", len(zero.Value), err)
	}
	for key, rule := range map[string]string{"": "it is empty", strings.Repeat("x", 513): "it has 513 bytes, at most 512",
		"\xff": "it is not UTF-8", "a\u0085": "it has a control character", "é": "", "k": "", strings.Repeat("x", 512): ""} {
		if err := badKey(key); (err == nil) != (rule == "") || err != nil && !strings.Contains(err.Error(), ": "+rule) {
			t.Errorf("%q: %v, want %q", key, err, rule)
		}
	}
}

// Each mode has a text, from which it is read back. Any other mode or text is refused.
func TestTheTextOfAMode(t *testing.T) {
	for _, m := range []Mode{Exclusive, Shared, Upgradable, Permits(2, 5)} {
		text, err := m.MarshalText()
		var read Mode
		if err := errors.Join(err, read.UnmarshalText(text)); err != nil || read != m {
			t.Errorf("%q is read as %v, %v", text, read, err)
		}
	}
	invalid := []Mode{Permits(3, 2), Permits(0, 2), Permits(-1, -1), Permits(2, 1<<30+1), Mode(modes.Upgradable + 1)}
	for _, m := range invalid {
		if text, err := m.MarshalText(); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%q, %v", text, err)
		}
		if text := m.String(); !strings.HasPrefix(text, "invalid: ") {
			t.Errorf("an invalid mode calls itself %q", text)
		}
	}
	if err := new(Mode).UnmarshalText([]byte("half")); !errors.Is(err, ErrBadRequest) {
		t.Error(err)
	}
}
