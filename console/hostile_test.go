package console

import (
	"encoding/json"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

func TestKeysAndValuesAreText(t *testing.T) {
	node := solo(t)
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `{{.Instance}}`,
		`javascript:alert(1)`, `</svg></title><b>`,
		`&lt;b&gt;`, `?key=other&prefix=<i>`, `a#b%20c+d/../..`, "</style><script>", "<!--",
	}
	for _, key := range hostile {
		lock(t, node, mortise.Request{Key: key, Value: key})
		wait(t, node, key, 1)
	}
	h := New(node, Options{Long: time.Nanosecond})
	tag := regexp.MustCompile(`<(script|img|b|i|style)[ >]`)
	plain := tag.FindAllString(mustPage(t, New(solo(t), Options{}), "/"), -1)
	check := func(path string) string {
		t.Helper()
		page := mustPage(t, h, path)
		for _, found := range tag.FindAllString(page, -1) {
			if found == "<img " || found == "<i>" || strings.Count(page, "<script") != 1 ||
				strings.Count(page, "<style") != 1 {
				t.Errorf("%s: a key or value became markup: %s (a page without any has %v)", path, found, plain)
			}
		}
		for _, never := range []string{"onerror=alert(1)>", "' onmouseover", `"><`, "<!--", "ZgotmplZ"} {
			if never == `"><` { // the page's own tags contain this text
				continue
			}
			if strings.Contains(page, never) {
				t.Errorf("%s: %q stands in the page as it is", path, never)
			}
		}
		return page
	}
	all := check("/")
	for _, key := range hostile {
		page := check("/?key=" + neturl.QueryEscape(key) + "&prefix=" + neturl.QueryEscape(key))
		if !strings.Contains(page, "1 holds it, 1 waits") {
			t.Errorf("the page of %q does not show it", key)
		}
		link := `href="?key=` + strings.ReplaceAll(neturl.QueryEscape(key), "+", "%20") + `"`
		if !strings.Contains(strings.ToLower(all), strings.ToLower(link)) {
			t.Errorf("no link leads to %q", key)
		}
	}
	var v view
	if _, body, _ := get(t, h, "/status.json"); json.Unmarshal([]byte(body), &struct{ Locks any }{v.Locks}) != nil ||
		strings.Contains(body, "<script") {
		t.Error("the JSON is invalid, or would be markup for a client that takes it for a page")
	}
}

// Characters that have no width, or that change the direction of writing, must not make a key look
// like another key.
func TestWhatCannotBeSeenIsShown(t *testing.T) {
	node := solo(t)
	key := "orders/\u202e24\u200b"
	lock(t, node, mortise.Request{Key: key, Value: "\u2066x"})
	page := mustPage(t, New(node, Options{}), "/")
	wantText(t, page, `orders/\u{202e}24\u{200b}`, `\u{2066}x`, "?key=orders%2f%e2%80%ae24%e2%80%8b")
	page = regexp.MustCompile(`data-k="[^"]*"`).ReplaceAllString(page, "") // attributes are not displayed
	if strings.ContainsAny(page, "\u202e\u200b\u2066") {
		t.Error("the page contains an invisible mark")
	}
	for text, want := range map[string]string{"a b": "a b", "é漢🔒": "é漢🔒", "a\u00a0b": `a\u{a0}b`, "\xff": `\x{ff}`,
		"a\nb": `a\u{a}b`} {
		if got := plain.Text(text); got != want {
			t.Errorf("shown(%q) = %q, want %q", text, got, want)
		}
	}
}

// The names, versions and clusters of other instances, and what a viewer searches for, must be text
// everywhere on the page, in its title, and in the commands that it offers.
func TestFieldsOfOthersAreText(t *testing.T) {
	const evil = "</title><script>alert(1)</script>\u202e'"
	node := newPastNode(mortise.KeyInfo{Key: evil, Held: 1, Waiting: 1,
		Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: evil, Token: 7}}, {Hold: mortise.Hold{Holder: evil}}}})
	node.status.Cluster, node.status.Version, node.status.Zone, node.status.Address = evil, evil, evil, evil
	for i := range node.members {
		m := &node.members[i]
		m.Name, m.Version, m.Zone, m.Address, m.For = evil, evil+"2", evil, evil, evil
	}
	h := New(keyedPast{node}, Options{History: anHour(), Console: func(m mortise.Member) string { return m.Name }})
	for _, path := range []string{"/", "/?key=" + neturl.QueryEscape(evil), "/?holder=" + neturl.QueryEscape(evil),
		"/?age=" + neturl.QueryEscape(evil), "/?prefix=" + neturl.QueryEscape(evil)} {
		page := mustPage(t, h, path)
		if strings.Count(page, "<script") != 1 || strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: a name became markup", path)
		}
		// Attributes are not displayed, apart from labels for screen readers.
		page = regexp.MustCompile(` (data-k|value)="[^"]*"`).ReplaceAllString(page, "")
		if strings.Contains(page, "\u202e") {
			t.Errorf("%s: an invisible mark is in the page", path)
		}
	}
	wantText(t, mustPage(t, h, "/?key="+neturl.QueryEscape(evil)), `mortise get $&#39;`, `\xe2\x80\xae`)
}

// The policy must refuse foreign scripts and styles, frames, and forms to other sites.
func TestPolicy(t *testing.T) {
	h := New(solo(t), Options{})
	answer, page, _ := get(t, h, "/")
	policy := answer.Header.Get("Content-Security-Policy")
	wantText(t, policy, "default-src 'none'", "script-src 'sha256-", "style-src 'sha256-",
		"connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'")
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy is open: %s", policy)
	}
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8", "/status.json": "application/json",
		"/livez": "text/plain; charset=utf-8", "/nothing": "text/plain; charset=utf-8"} {
		answer, _, _ := get(t, h, path)
		for name, want := range map[string]string{"Content-Type": kind, "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY"} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := answer.Header.Get("Content-Security-Policy")
		wantText(t, policy, "default-src 'none'", "frame-ancestors 'none'")
	}
	if elsewhere := regexp.MustCompile(`(src|href|action)="(https?:)?/`).FindString(page); elsewhere != "" {
		t.Errorf("%s leads to a path or a host: the page has to work at any", elsewhere)
	}
	if regexp.MustCompile(` (style|on[a-z]+)="`).MatchString(page) {
		t.Error("the page has a style or a handler in an attribute, which the policy refuses")
	}
}
