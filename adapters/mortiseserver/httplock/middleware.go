package httplock

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/internal/serial"
)

// Node is the part of *mortise.Node that a Middleware uses.
type Node = serial.Node

// Middleware takes a lock for each request. If it does not get the lock, it answers, in plain text:
//
//	400 Bad Request             the key is not valid: see mortise.Request.Key
//	423 Locked                  the lock is held, and the request has Try, the queue has
//	                            Request.MaxWaiting requests, or MaxWait has passed
//	500 Internal Server Error   the mortise.Request is not valid or not allowed
//	503 Service Unavailable     the group cannot grant locks, the request's context has ended, or the
//	                            handler has written nothing before its lock was lost
//
// 423 and 503 have the header Retry-After. The answer does not contain the reason; Failed gets it.
type Middleware struct {
	Node Node // required

	// Request returns the lock under which a request is handled. If it returns false, the request
	// is handled without a lock. Set MaxWaiting to limit how many requests wait for a key.
	// Required.
	Request func(*http.Request) (mortise.Request, bool)

	// MaxWait limits how long a request waits for its lock. Zero means that only the context of the
	// request does. In any case a request waits for at most about a second while the lease of the
	// node is lost, because the group cannot be reached.
	MaxWait time.Duration

	// RetryAfter is the time in the header Retry-After, in full seconds. Zero means 1 s.
	RetryAfter time.Duration

	// Failed is called with the reason of each answer above, and with an error that wraps
	// mortise.ErrLost if the lock was lost while the handler ran. Nil means that the errors are
	// dropped.
	Failed func(*http.Request, error)
}

// Wrap returns a handler that calls next under the lock.
func (m Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, locked := m.Request(r)
		if !locked {
			next.ServeHTTP(w, r)
			return
		}
		seen := &writer{ResponseWriter: w}
		reason, err := serial.Do(r.Context(), m.Node, request, m.MaxWait, func(ctx context.Context) {
			next.ServeHTTP(seen, r.WithContext(ctx))
		})
		if err != nil && m.Failed != nil {
			m.Failed(r, err)
		}
		if reason != serial.Ran && !seen.wrote {
			m.refuse(w, reason)
		}
	})
}

func (m Middleware) refuse(w http.ResponseWriter, reason serial.Reason) {
	status, text := http.StatusInternalServerError, "httplock: the request for the lock was refused"
	switch reason {
	case serial.Busy:
		status, text = http.StatusLocked, "httplock: another request is handled"
	case serial.Away, serial.Ended, serial.Cut:
		status, text = http.StatusServiceUnavailable, "httplock: the lock cannot be had now"
	case serial.BadKey:
		status, text = http.StatusBadRequest, "httplock: the key of the lock is not valid"
	}
	if status == http.StatusLocked || status == http.StatusServiceUnavailable {
		seconds := int64(m.RetryAfter / time.Second)
		if m.RetryAfter%time.Second > 0 || seconds < 1 {
			seconds = max(seconds, 0) + 1
		}
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}

// writer notes whether a handler has answered. http.ResponseController finds the methods of the
// original through Unwrap.
type writer struct {
	http.ResponseWriter
	wrote bool
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.wrote = w.wrote || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(p)
}

// ReadFrom lets io.Copy use the ReadFrom of the original.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	w.wrote = true
	return io.Copy(w.ResponseWriter, r)
}

// Flush is for handlers that look for an http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.wrote = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}
