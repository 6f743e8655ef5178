package compare

import (
	"context"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/k8sleaderelector"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisecollector"
	"github.com/mortise-lock/mortise/mortisetest"
)

var (
	_ k8sleaderelector.LeaderElection       = (*mortisecollector.Elector)(nil)
	_ extensioncapabilities.PipelineWatcher = (*mortisecollector.Elector)(nil)
)

// host is a collector as a receiver sees it.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// The extension is found and used with contrib's interface, as k8sobjects does it, and told that
// the pipelines are ready, as the service of the Collector does it.
func TestLeaderElection(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	factory := mortisecollector.NewFactoryFor(cluster.Node(0))
	created, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()),
		factory.CreateDefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	id := component.NewID(component.MustNewType("mortise"))
	var h component.Host = host{id: created}
	started, stopped := make(chan bool), make(chan bool, 1)

	if err := created.Start(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	elector, is := h.GetExtensions()[id].(k8sleaderelector.LeaderElection)
	if !is {
		t.Fatalf("%T is no LeaderElection", created)
	}
	elector.SetCallBackFuncs(
		func(ctx context.Context) {
			_, is := mortise.TokenFrom(ctx)
			started <- is
		},
		func() { stopped <- true })
	var ext extension.Extension = elector
	watcher, is := ext.(extensioncapabilities.PipelineWatcher)
	if !is {
		t.Fatalf("%T is no PipelineWatcher", created)
	}
	if err := watcher.Ready(); err != nil {
		t.Fatal(err)
	}
	if !<-started {
		t.Error("the context has no token")
	}
	if err := watcher.NotReady(); err != nil || len(stopped) != 1 {
		t.Errorf("stopped: %d, %v", len(stopped), err)
	}
	if err := ext.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
