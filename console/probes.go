package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// readyWithin bounds a question for readiness. It is below the second that an orchestrator usually
// waits, so that the answer can name the reason.
const readyWithin = 500 * time.Millisecond

// serveLive reports whether a restart of the process would help. It makes no call to the group.
func (h *handler) serveLive(w http.ResponseWriter, r *http.Request) {
	if err := h.node.Err(); err != nil {
		h.probe(w, r, http.StatusServiceUnavailable, "the node has ended", err.Error())
		return
	}
	h.probe(w, r, http.StatusOK, "alive", "")
}

// serveReady reports whether this instance can be granted locks now.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := h.node.Ready(ctx); err != nil {
		h.probe(w, r, http.StatusServiceUnavailable, "not ready", waitsFor(h.node.Status(), err))
		return
	}
	h.probe(w, r, http.StatusOK, "ready", "")
}

// waitsFor returns what a node that is not ready waits for: the node's own sentence, which includes
// the remedy, or else the error.
func waitsFor(s mortise.Status, err error) string {
	if s.Err == nil && s.Waiting != "" {
		return s.Waiting
	}
	return err.Error()
}

// probe answers whatever the Host header says, since a prober that uses a name must not conclude
// that the instance is dead. But it tells names of instances and their addresses only where the
// page would.
func (h *handler) probe(w http.ResponseWriter, r *http.Request, code int, text, why string) {
	if why != "" && h.named(r) {
		text += ": " + why
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, shown(strings.ReplaceAll(text, "\n", "; "))) // net/http drops the body for HEAD
}
