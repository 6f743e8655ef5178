package mortisecollector

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// host is a collector with one extension, in the order of calls of the Collector's service: the
// extensions start, the receivers start, all pipelines are ready; then the other way round.
type host struct {
	id     component.ID
	all    map[component.ID]component.Component
	logged *observer.ObservedLogs
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.all }

func newHost(t testing.TB, factory extension.Factory, configure func(component.Config)) *host {
	core, logged := observer.New(zapcore.InfoLevel)
	h := &host{id: component.NewID(component.MustNewType("mortise")), logged: logged}
	set := extension.Settings{ID: h.id}
	set.Logger = zap.New(core)
	config := factory.CreateDefaultConfig()
	if configure != nil {
		configure(config)
	}
	ext, err := factory.Create(context.Background(), set, config)
	if err != nil {
		t.Fatal(err)
	}
	h.all = map[component.ID]component.Component{h.id: ext}
	return h
}

func (h *host) elector() *Elector { return h.all[h.id].(*Elector) }

// leaderElection has the methods that the receivers of contrib look for; see the module compare.
type leaderElection interface {
	extension.Extension
	SetCallBackFuncs(func(context.Context), func())
}

// watch is what all receivers of a test report.
type watch struct {
	t       testing.TB
	mu      sync.Mutex // guards the fields below
	running map[string]bool
	tokens  []mortise.Token
	events  []string
	places  map[string]string // a receiver runs in one place at a time
}

func newWatch(t testing.TB) *watch {
	return &watch{t: t, running: map[string]bool{}, places: map[string]string{}}
}

func (w *watch) isRunning(names ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if !w.running[name] {
			return false
		}
	}
	return true
}

func (w *watch) count() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, is := range w.running {
		if is {
			n++
		}
	}
	return n
}

// fakeReceiver registers as k8sobjects does. Its name is that of its kind and of its collector.
type fakeReceiver struct {
	watch      *watch
	kind, at   string
	beforeStop func()
}

func (r fakeReceiver) name() string { return r.kind + "@" + r.at }

func (r fakeReceiver) start(h *host) error {
	elector, is := h.GetExtensions()[h.id].(leaderElection)
	if !is {
		return fmt.Errorf("%T has not the methods of LeaderElection", h.GetExtensions()[h.id])
	}
	elector.SetCallBackFuncs(r.begin, r.end)
	return nil
}

func (r fakeReceiver) begin(ctx context.Context) {
	w := r.watch
	token, is := mortise.TokenFrom(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !is {
		w.t.Errorf("the context of %s has no token", r.name())
	}
	if w.running[r.name()] {
		w.t.Errorf("%s starts before its former stop has returned", r.name())
	}
	if other, is := w.places[r.kind]; is {
		w.t.Errorf("%s starts at %s while it runs at %s", r.kind, r.at, other)
	}
	w.running[r.name()], w.places[r.kind] = true, r.at
	w.tokens, w.events = append(w.tokens, token), append(w.events, "start "+r.name())
}

func (r fakeReceiver) end() {
	if r.beforeStop != nil {
		r.beforeStop()
	}
	w := r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running[r.name()] {
		w.t.Errorf("%s is stopped twice, or was not started", r.name())
	}
	w.running[r.name()] = false
	delete(w.places, r.kind)
	w.events = append(w.events, "stop "+r.name())
}

// run starts a host with its receivers and says that its pipelines are ready.
func (h *host) run(t testing.TB, receivers ...fakeReceiver) {
	t.Helper()
	if err := h.elector().Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range receivers {
		if err := r.start(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.elector().Ready(); err != nil {
		t.Fatal(err)
	}
}

func (h *host) shutDown(t testing.TB) {
	t.Helper()
	if err := h.elector().NotReady(); err != nil {
		t.Error(err)
	}
	if err := h.elector().Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// three are three collectors, each beside a node, with the receivers "objects" and "events".
func three(t testing.TB, w *watch) (*mortisetest.Cluster, []*host) {
	cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
	hosts := make([]*host, cluster.Len())
	for i := range hosts {
		hosts[i] = newHost(t, NewFactoryFor(cluster.Node(i)), nil)
		at := fmt.Sprint(i)
		hosts[i].run(t, fakeReceiver{watch: w, kind: "objects", at: at}, fakeReceiver{watch: w, kind: "events", at: at})
	}
	return cluster, hosts
}

// leader waits until both receivers of one collector run, other than those of except.
func (w *watch) leader(c *mortisetest.Cluster, except int) (leader int) {
	c.Until("the receivers of a collector run", func() bool {
		for i := range c.Len() {
			if i != except && w.isRunning(fmt.Sprint("objects@", i), fmt.Sprint("events@", i)) {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

const key = "collector/mortise"
