package whole

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/k8sclusterreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisecollector"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

// configuration opens no port for the metrics of the collector itself.
const configuration = `yaml:
extensions:
  mortise:
receivers:
  k8s_cluster:
    auth_type: none
    k8s_leader_elector: mortise
exporters:
  lines:
service:
  extensions: [mortise]
  pipelines:
    logs:
      receivers: [k8s_cluster]
      exporters: [lines]
  telemetry:
    logs:
      level: error
    metrics:
      level: none
`

const shutDown = "shut-down" // the collector that exports an event of this pod shuts down

func TestMain(m *testing.M) { trio.Main(m, collect) }

// collect runs in a process of its own, as a whole collector with contrib's receiver k8s_cluster.
func collect(ctx context.Context, node *mortise.Node) error {
	var collector *otelcol.Collector
	lines := newLines(func() { collector.Shutdown() })
	factories := func() (factories otelcol.Factories, err error) {
		factories.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](mortisecollector.NewFactoryFor(node))
		if err != nil {
			return factories, err
		}
		factories.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](k8sclusterreceiver.NewFactory())
		if err != nil {
			return factories, err
		}
		factories.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](lines)
		return factories, err
	}
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(), Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{configuration}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		return err
	}
	if err := collector.Run(ctx); err != nil {
		return err
	}
	fmt.Println("ended in order")
	return nil
}

// newLines returns the factory of an exporter that writes a line for each event of a pod.
func newLines(end func()) exporter.Factory {
	seen := map[string]bool{} // the receiver exports from one goroutine
	consume := func(_ context.Context, logs plog.Logs) error {
		for _, pod := range pods(logs) {
			switch {
			case pod == shutDown:
				go end()
			case seen[pod]:
				fmt.Println("failed: two events of", pod)
			}
			seen[pod] = true
			fmt.Println("event of", pod)
		}
		return nil
	}
	create := func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) {
		return logsExporter{consume: consume}, nil
	}
	return exporter.NewFactory(component.MustNewType("lines"), func() component.Config { return &struct{}{} },
		exporter.WithLogs(create, component.StabilityLevelAlpha))
}

// pods returns the IDs of the pods in the events of entities.
func pods(logs plog.Logs) (all []string) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if id, is := record.Attributes().Get("otel.entity.id"); is {
					if uid, is := id.Map().Get("k8s.pod.uid"); is {
						all = append(all, uid.Str())
					}
				}
			}
		}
	}
	return all
}

type logsExporter struct {
	component.StartFunc
	component.ShutdownFunc
	consume consumer.ConsumeLogsFunc
}

func (logsExporter) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (e logsExporter) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	return e.consume(ctx, logs)
}

// TestWholeCollectors has three collectors that watch the pods of one API server. Only the leader
// does, so each event arrives once. The leader is killed, and the next one is shut down.
func TestWholeCollectors(t *testing.T) {
	api := newPodAPI(t)
	api.add("one")
	host, port, _ := strings.Cut(api.address(), ":")
	f := trio.Start(t, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	var leaders []int
	// lead waits for the next leader, which gets the event of the first pod from its list.
	lead := func() {
		t.Helper()
		leader := f.Await(len(leaders)+1, "event of one")[len(leaders)]
		leaders = append(leaders, leader)
	}
	// only checks that the event of a new pod arrives from the leader, and from no other collector.
	only := func(pod string) {
		t.Helper()
		api.add(pod)
		if got := f.Await(1, "event of "+pod); len(got) != 1 || got[0] != leaders[len(leaders)-1] {
			t.Fatalf("the event of %s came from the processes %v, but %v have led", pod, got, leaders)
		}
	}
	lead()
	only("two")
	f.Kill(leaders[0])
	lead()
	only("three")
	if most := api.watchers(); most != 1 {
		t.Errorf("%d collectors watched at one time, want 1", most)
	}
	api.pass(shutDown)
	if got := f.Await(1, "ended in order"); got[0] != leaders[1] {
		t.Errorf("process %d has ended, and the processes %v have led", got[0], leaders)
	}
	lead()
	only("four")
}
