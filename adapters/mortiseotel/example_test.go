package mortiseotel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel"
)

// A service that Prometheus scrapes.
func Example() {
	ctx := context.Background()
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		panic(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	telemetry, err := mortiseotel.New(mortiseotel.Options{
		MeterProvider: meters,
		// The classes must be few, so never return the keys themselves.
		Class: func(key string) string { class, _, _ := strings.Cut(key, "/"); return class },
	})
	if err != nil {
		panic(err)
	}
	node, err := mortise.Start(ctx, mortise.Config{Hooks: telemetry.Hooks()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	stop, err := telemetry.Observe(node)
	if err != nil {
		panic(err)
	}
	defer stop()

	lock, err := node.Lock(ctx, "orders/42")
	if err != nil {
		panic(err)
	}
	if err := lock.Unlock(ctx); err != nil {
		panic(err)
	}

	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page,
		httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "mortise_leader_known{") ||
			strings.HasPrefix(line, "mortise_lock_wait_duration_seconds_count") {
			fmt.Println(line[:strings.Index(line, "{")], strings.TrimSpace(line[strings.LastIndex(line, " "):]))
		}
	}
	// Output:
	// mortise_leader_known 1
	// mortise_lock_wait_duration_seconds_count 1
}
