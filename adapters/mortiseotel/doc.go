// Package mortiseotel exports a mortise node's metrics and traces through OpenTelemetry.
//
//	telemetry, err := mortiseotel.New(mortiseotel.Options{
//		MeterProvider: meters, TracerProvider: tracers,
//	})
//	...
//	node, err := mortise.Start(ctx, mortise.Config{Hooks: telemetry.Hooks()})
//	...
//	stop, err := telemetry.Observe(node) // the gauges
//	...
//	defer stop()
//
// The example uses Prometheus.
//
// It is a separate module, so that programs that do not use it have no dependency on OpenTelemetry.
// It uses the API only: the program chooses an SDK, which decides what is measured and where the
// values go. go run ./generate makes dashboard.json (Grafana) and alerts.yml (Prometheus) from the
// same table as the metrics. A test checks that they are current, and that every metric and label
// in them exists. docs/OPERATION.md of mortise says what to do when an alert fires.
//
// # Metrics
//
// internal/table lists them. Units are seconds and counts. The OpenTelemetry exporter for
// Prometheus derives names that pass Prometheus's linter. No label has an unbounded set of values,
// so keys are not labels. Options.Class may sort keys into a few classes, which become the label
// "class". Counters begin at 0 for every value of their label, so that a rule sees the first
// increase.
//
// # Spans
//
// "mortise.wait" is one call for a lock, in the trace of its caller. It is made when the call ends,
// with the call's duration, so a sampler decides at that time. "mortise.hold" lasts from the grant
// until the lock is unlocked or lost. Both have the key and the token.
//
// A wait links to the hold that held the lock when the request was queued, not to the requests in
// between. If that hold is of this process, the link is to its span (mortise.link is "hold"). If it
// is of another instance, the link is to the span under which that lock was requested there
// (mortise.link is "caller"). That is what travels with a lock, as 25 bytes of Hooks.Mark, since
// the span of the hold does not exist yet when the request is sent. Both instances must use this
// package with a TracerProvider, and the caller there must have a span. In any case
// mortise.behind.holder and mortise.behind.token name the hold; a token belongs to one hold only.
//
// # Guarantees
//
// On the goroutines of a node's callers this package does no more than the SDK's instruments do.
// Everything else runs on a goroutine that no call waits for. See mortise.Hooks.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Telemetry serves one node. If a process has several
// nodes, give each its own Telemetry with different Options.Attributes.
//
// # Failure
//
// New returns the error of an instrument that cannot be made. A span whose end was dropped because
// hooks were too slow is never exported.
//
// # Limits
//
// At most 16,384 current holds of this process and the last 1,024 ended ones are remembered. A wait
// for any other hold has no link to it.
//
// # Refused alternative
//
// Hooks in the core that use OpenTelemetry would put its modules into every build. A registry of
// our own would be one more thing to scrape. Prometheus's client library would be shorter, but of
// no use to programs without Prometheus.
package mortiseotel
