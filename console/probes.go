package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// readyWithin bounds a question for readiness: below the second that an orchestrator usually waits, so that the answer can say why.
const readyWithin = 500 * time.Millisecond

// serveLive says whether a restart of the process would help. It asks nobody.
func (h *handler) serveLive(w http.ResponseWriter, _ *http.Request) {
	if err := h.node.Err(); err != nil {
		probe(w, http.StatusServiceUnavailable, "the node has ended: "+err.Error())
		return
	}
	probe(w, http.StatusOK, "alive")
}

// serveReady says whether this instance can be granted locks now.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := h.node.Ready(ctx); err != nil {
		probe(w, http.StatusServiceUnavailable, "not ready: "+waitsFor(h.node.Status(), err))
		return
	}
	probe(w, http.StatusOK, "ready")
}

// waitsFor is what a node that is not ready waits for: its own sentence, which names the way out, or else the error.
func waitsFor(s mortise.Status, err error) string {
	if s.Err == nil && s.Waiting != "" {
		return s.Waiting
	}
	return err.Error()
}

func probe(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, shown(strings.ReplaceAll(text, "\n", "; "))) // net/http drops the body for HEAD
}
