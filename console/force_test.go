package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

func post(t *testing.T, h http.Handler, form neturl.Values, headers ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://10.0.0.9/?key="+neturl.QueryEscape(form.Get("key")), strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Without MayForce no form is shown and POST is rejected. A viewer that MayForce rejects must not
// get the form either.
func TestForceNeedsPermission(t *testing.T) {
	node := solo(t)
	held := lock(t, node, mortise.Request{Key: "k"})
	form := neturl.Values{"key": {"k"}, "token": {fmt.Sprint(uint64(held.Token()))}, "reason": {"stuck"}}
	closed := New(node, Options{})
	if code, _ := post(t, closed, form); code != http.StatusMethodNotAllowed {
		t.Errorf("POST is answered with %d by a handler that only reads", code)
	}
	may := func(r *http.Request) bool { return r.Header.Get("Operator") == "yes" }
	h := New(node, Options{MayForce: may})
	for _, handler := range []http.Handler{closed, h} {
		if page := mustPage(t, handler, "/?key=k"); strings.Contains(page, "<form method=\"post\"") {
			t.Error("a viewer without permission is shown the form")
		}
	}
	if code, page := post(t, h, form); code != http.StatusForbidden || !strings.Contains(page, "you may not") {
		t.Errorf("a viewer without permission gets %d", code)
	}
	if held.Err() != nil {
		t.Fatalf("the hold has ended: %v", held.Err())
	}
	code, page := post(t, h, form, "Operator", "yes")
	if code != http.StatusOK {
		t.Errorf("a viewer with permission gets %d", code)
	}
	wantText(t, page, "has ended")
	var forced *mortise.ForcedError
	eventually(t, "the holder is told", func() bool { return errors.As(held.Err(), &forced) })
	if forced.Reason != "stuck" {
		t.Errorf("the holder is told %q", forced.Reason)
	}
	if code, page := post(t, h, form, "Operator", "yes"); code != http.StatusOK ||
		!strings.Contains(page, "had ended before") {
		t.Errorf("ended again: %d", code)
	}
}

func TestForceIsRefusedFromOtherSites(t *testing.T) {
	node := solo(t)
	held := lock(t, node, mortise.Request{Key: "k"})
	h := New(node, Options{MayForce: func(*http.Request) bool { return true }})
	form := neturl.Values{"key": {"k"}, "token": {fmt.Sprint(uint64(held.Token()))}, "reason": {"stuck"}}
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		if code, page := post(t, h, form, headers...); code != http.StatusForbidden ||
			!strings.Contains(page, "another site") {
			t.Errorf("%v: %d", headers, code)
		}
	}
	for _, wrong := range []neturl.Values{
		{"key": {"k"}, "token": form["token"]}, {"key": {"k"}, "token": {"0"}, "reason": {"r"}},
		{"key": {"k"}, "token": {"x"}, "reason": {"r"}},
		{"token": form["token"], "reason": {"r"}},
		{"key": {"k"}, "token": form["token"], "reason": {strings.Repeat("x", 2*formBytes)}},
	} {
		if code, _ := post(t, h, wrong, "Sec-Fetch-Site", "same-origin"); code != http.StatusBadRequest {
			t.Errorf("%v: %d", wrong["reason"], code)
		}
	}
	if held.Err() != nil {
		t.Fatalf("the hold has ended: %v", held.Err())
	}
	if code, _ := post(t, h, form, "Origin", "http://10.0.0.9"); code != http.StatusOK {
		t.Errorf("from the page itself: %d", code)
	}
	eventually(t, "the hold has ended", func() bool { return held.Err() != nil })
}
