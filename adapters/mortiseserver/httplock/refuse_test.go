package httplock

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/adapters/mortiseserver/internal/serial"
)

// TestEachReasonHasItsAnswer checks the whole answer for each reason.
func TestEachReasonHasItsAnswer(t *testing.T) {
	for reason, want := range map[serial.Reason]struct {
		status int
		text   string
		retry  string
	}{
		serial.Cut:     {http.StatusServiceUnavailable, "httplock: the lock cannot be had now", "1"},
		serial.Busy:    {http.StatusLocked, "httplock: another request is handled", "1"},
		serial.Away:    {http.StatusServiceUnavailable, "httplock: the lock cannot be had now", "1"},
		serial.Ended:   {http.StatusServiceUnavailable, "httplock: the lock cannot be had now", "1"},
		serial.BadKey:  {http.StatusBadRequest, "httplock: the key of the lock is not valid", ""},
		serial.Mistake: {http.StatusInternalServerError, "httplock: the request for the lock was refused", ""},
	} {
		w := httptest.NewRecorder()
		Middleware{}.refuse(w, reason)
		if w.Code != want.status || strings.TrimSpace(w.Body.String()) != want.text ||
			w.Header().Get("Retry-After") != want.retry || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d: %d %q %v, want %+v", reason, w.Code, w.Body, w.Header(), want)
		}
	}
	for after, want := range map[time.Duration]string{
		0: "1", -5 * time.Second: "1", time.Millisecond: "1", 999 * time.Millisecond: "1", time.Second: "1",
		1001 * time.Millisecond: "2", 2 * time.Second: "2", 90 * time.Second: "90",
	} {
		w := httptest.NewRecorder()
		Middleware{RetryAfter: after}.refuse(w, serial.Busy)
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("RetryAfter %v: %s, want %s", after, got, want)
		}
	}
}

// TestEachWayToWriteCounts checks after which calls of a handler the client has its answer, so that
// no other one may follow.
func TestEachWayToWriteCounts(t *testing.T) {
	for name, row := range map[string]struct {
		write func(w *writer)
		want  bool
	}{
		"nothing":    {func(*writer) {}, false},
		"Header":     {func(w *writer) { w.Header().Set("X", "1") }, false},
		"status 100": {func(w *writer) { w.WriteHeader(http.StatusContinue) }, false},
		"status 103": {func(w *writer) { w.WriteHeader(http.StatusEarlyHints) }, false},
		"status 101": {func(w *writer) { w.WriteHeader(http.StatusSwitchingProtocols) }, true},
		"status 200": {func(w *writer) { w.WriteHeader(http.StatusOK) }, true},
		"status 500": {func(w *writer) { w.WriteHeader(http.StatusInternalServerError) }, true},
		"100, 200":   {func(w *writer) { w.WriteHeader(http.StatusContinue); w.WriteHeader(http.StatusOK) }, true},
		"200, 100":   {func(w *writer) { w.WriteHeader(http.StatusOK); w.WriteHeader(http.StatusContinue) }, true},
		"Write":      {func(w *writer) { _, _ = w.Write(nil) }, true},
		"ReadFrom":   {func(w *writer) { _, _ = w.ReadFrom(strings.NewReader("")) }, true},
		"Flush":      {func(w *writer) { w.Flush() }, true},
		"FlushError": {func(w *writer) { _ = w.FlushError() }, true},
		"Hijack":     {func(w *writer) { _, _, _ = w.Hijack() }, true},
	} {
		w := &writer{ResponseWriter: httptest.NewRecorder()}
		if row.write(w); w.wrote != row.want {
			t.Errorf("%s: %v, want %v", name, w.wrote, row.want)
		}
	}
}
