package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// readyWithin bounds a question for readiness: below the second that an orchestrator usually waits,
// so that the answer can say why.
const readyWithin = 500 * time.Millisecond

// serveLive says whether a restart of the process would help. It asks nobody.
func (h *handler) serveLive(w http.ResponseWriter, r *http.Request) {
	if err := h.node.Err(); err != nil {
		h.probe(w, r, http.StatusServiceUnavailable, "the node has ended", err.Error())
		return
	}
	h.probe(w, r, http.StatusOK, "alive", "")
}

// serveReady says whether this instance can be granted locks now.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := h.node.Ready(ctx); err != nil {
		h.probe(w, r, http.StatusServiceUnavailable, "not ready", waitsFor(h.node.Status(), err))
		return
	}
	h.probe(w, r, http.StatusOK, "ready", "")
}

// waitsFor is what a node that is not ready waits for: its own sentence, which names the way out,
// or else the error.
func waitsFor(s mortise.Status, err error) string {
	if s.Err == nil && s.Waiting != "" {
		return s.Waiting
	}
	return err.Error()
}

// probe answers whatever the Host header says, since what probes an instance by a name must not
// take it for dead; but names of instances and their addresses are told only where the page would
// be.
func (h *handler) probe(w http.ResponseWriter, r *http.Request, code int, text, why string) {
	if why != "" && h.named(r) {
		text += ": " + why
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, shown(strings.ReplaceAll(text, "\n", "; "))) // net/http drops the body for HEAD
}
