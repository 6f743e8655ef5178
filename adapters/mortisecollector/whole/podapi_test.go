package whole

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// podAPI takes the place of an API server of Kubernetes that has only pods: discovery, list and
// watch. It is safe for concurrent use.
type podAPI struct {
	server *httptest.Server

	mu       sync.Mutex    // guards the fields below
	events   []podEvent    // the resource version is their number
	more     chan struct{} // closed when there is one more
	watching int
	most     int // the highest number of watches at one time
}

type podEvent struct {
	pod    map[string]any
	passes bool // no list has it
}

func newPodAPI(t testing.TB) *podAPI {
	a := &podAPI{more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1",
			"resources": []any{map[string]any{"name": "pods", "kind": "Pod", "namespaced": true,
				"verbs": []string{"list", "watch"}}}})
	})
	mux.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("watch") == "" {
			a.list(w)
			return
		}
		a.watch(w, r)
	})
	a.server = httptest.NewTLSServer(mux) // answers 404 to all other requests
	t.Cleanup(func() {
		a.server.CloseClientConnections() // ends the watches
		a.server.Close()
	})
	return a
}

func (a *podAPI) address() string { return strings.TrimPrefix(a.server.URL, "https://") }

// add adds a pod.
func (a *podAPI) add(name string) { a.event(name, false) }

// pass sends a pod to those that watch now.
func (a *podAPI) pass(name string) { a.event(name, true) }

func (a *podAPI) event(name string, passes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	version := strconv.Itoa(len(a.events) + 1)
	a.events = append(a.events, podEvent{passes: passes, pod: map[string]any{"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": name, "resourceVersion": version}}})
	close(a.more)
	a.more = make(chan struct{})
}

// watchers returns the highest number of watches at one time.
func (a *podAPI) watchers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}

func (a *podAPI) list(w http.ResponseWriter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []any{}
	for _, e := range a.events {
		if !e.passes {
			items = append(items, e.pod)
		}
	}
	answer(w, map[string]any{"kind": "PodList", "apiVersion": "v1", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(len(a.events))}})
}

func (a *podAPI) watch(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.Atoi(r.FormValue("resourceVersion"))
	if err != nil || r.FormValue("sendInitialEvents") != "" { // then the client lists first
		http.Error(w, "a watch begins after a list", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watching++
	defer func() { a.watching-- }()
	a.most = max(a.most, a.watching)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		events, more := a.events[after:], a.more
		after += len(events)
		a.mu.Unlock()
		for _, e := range events {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": e.pod}) // r ends if it fails
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		a.mu.Lock()
		if r.Context().Err() != nil {
			return
		}
	}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
