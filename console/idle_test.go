package console

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestThePageShowsTheIdleTime compares what the page says about a lock with MaxIdle: above all if
// its work has not moved for half of MaxIdle, with this instance, and in the queue of its key.
func TestThePageShowsTheIdleTime(t *testing.T) {
	const found, key, mine = "1 lock of this instance had no Beat for half of the MaxIdle.",
		"holds</b> 1 h 00 min, no Beat for 6.0 s of 10 s", "<dt>Beats</dt>"
	for _, c := range []struct {
		name string
		idle []mortise.IdleHold
		has  map[string]string // texts, and the paths of their pages
		not  map[string]string
	}{
		{"none", nil, nil, map[string]string{found: "/", "no Beat": "/?key=orders/42", mine: "/"}},
		{"a lock that hangs", []mortise.IdleHold{{Key: "orders/42", Token: 1, MaxIdle: 10 * time.Second,
			Idle: 6 * time.Second}}, map[string]string{found: "/", key: "/?key=orders/42", mine: "/",
			"orders/42</bdi></a> has had no Beat for 6.0 s of 10 s</li>": "/"}, nil},
		{"a lock whose work moves", []mortise.IdleHold{{Key: "orders/42", Token: 1, MaxIdle: 12 * time.Second,
			Idle: 6 * time.Second}}, map[string]string{mine: "/", "no Beat for 6.0 s of 12 s": "/?key=orders/42"},
			map[string]string{found: "/"}},
		{"a lock of another key", []mortise.IdleHold{{Key: "other", Token: 900, MaxIdle: time.Minute}},
			map[string]string{mine: "/"}, map[string]string{"min, no Beat": "/?key=orders/42", found: "/"}},
	} {
		node := newPastNode(queue("orders/42: orders-2 | orders-1", time.Now()))
		node.status.Idle = c.idle
		h := New(keyedPast{node}, Options{})
		for text, path := range c.has {
			if page := html.UnescapeString(mustPage(t, h, path)); !strings.Contains(page, text) {
				t.Errorf("%s: page %s lacks %q:\n%s", c.name, path, text, page)
			}
		}
		for text, path := range c.not {
			if page := html.UnescapeString(mustPage(t, h, path)); strings.Contains(page, text) {
				t.Errorf("%s: page %s has %q:\n%s", c.name, path, text, page)
			}
		}
	}
}
