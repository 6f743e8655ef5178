package mortiseotel

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

type meter struct {
	made       bool
	meter      metric.Meter
	attributes []attribute.KeyValue
	counters   map[string]metric.Int64Counter
	histograms map[string]metric.Float64Histogram
	gauges     map[string]metric.Float64Observable
}

func (m *meter) make(from metric.Meter, attributes []attribute.KeyValue) (err error) {
	*m = meter{
		made: true, meter: from, attributes: slices.Clone(attributes),
		counters: map[string]metric.Int64Counter{}, histograms: map[string]metric.Float64Histogram{},
		gauges: map[string]metric.Float64Observable{},
	}
	for _, row := range table.Metrics() {
		unit, help := metric.WithUnit(row.Unit), metric.WithDescription(row.Help)
		switch row.Kind {
		case table.Counter:
			m.counters[row.Name], err = from.Int64Counter(row.Name, unit, help)
		case table.Histogram:
			m.histograms[row.Name], err = from.Float64Histogram(row.Name, unit, help,
				metric.WithExplicitBucketBoundaries(row.Bounds...))
		case table.Gauge:
			m.gauges[row.Name], err = from.Float64ObservableGauge(row.Name, unit, help)
		case table.Sum:
			m.gauges[row.Name], err = from.Float64ObservableCounter(row.Name, unit, help)
		}
		if err != nil {
			return err
		}
	}
	m.zero()
	return nil
}

// zero sets every counter to 0, because an alert rule for an increase misses the first event of a
// new series.
func (m *meter) zero() {
	for _, row := range table.Metrics() {
		if row.Kind != table.Counter {
			continue
		}
		if row.Label == "" {
			m.add(row.Name, 0)
		}
		for _, value := range row.Values {
			m.add(row.Name, 0, attribute.String(row.Label, value))
		}
	}
}

func (m *meter) add(name string, n int64, attributes ...attribute.KeyValue) {
	m.counters[name].Add(context.Background(), n, metric.WithAttributes(append(attributes, m.attributes...)...))
}

func (m *meter) record(ctx context.Context, name string, value float64, class []attribute.KeyValue,
	attributes ...attribute.KeyValue) {
	m.histograms[name].Record(ctx, value, metric.WithAttributes(slices.Concat(attributes, class, m.attributes)...))
}

// kindOf returns the mode, without the numbers of permits.
func kindOf(m mortise.Mode) string {
	if m > mortise.Upgradable {
		return "permits"
	}
	return m.String()
}

func (m *meter) acquired(ctx context.Context, class []attribute.KeyValue, e mortise.LockEvent) {
	kind := attribute.String("kind", kindOf(e.Mode))
	if e.Purpose != "" {
		kind = attribute.String("kind", e.Purpose)
	}
	m.record(ctx, table.Wait, e.Took.Seconds(), class, kind, attribute.String("outcome", string(e.Outcome)))
	if e.Waiting >= 0 && e.Outcome != mortise.OutcomeEntered {
		m.record(ctx, table.Queue, float64(e.Waiting), class, kind)
	}
}

func (m *meter) unlocked(ctx context.Context, class []attribute.KeyValue, e mortise.LockEvent) {
	m.record(ctx, table.Unlock, e.Took.Seconds(), class, attribute.String("outcome", string(e.Outcome)))
	if e.Outcome != mortise.OutcomeLeft && e.Outcome != mortise.OutcomeLost {
		m.record(ctx, table.Hold, e.Held.Seconds(), class, attribute.String("kind", kindOf(e.Mode)),
			attribute.String("end", "unlocked"))
	}
}

func (m *meter) lost(class []attribute.KeyValue, e mortise.LockEvent) {
	m.record(context.Background(), table.Hold, e.Held.Seconds(), class, attribute.String("kind", kindOf(e.Mode)),
		attribute.String("end", "lost"))
	m.add(table.Losses, 1, append([]attribute.KeyValue{attribute.String("reason", string(e.Outcome))}, class...)...)
}

func (m *meter) leaked(class []attribute.KeyValue) {
	m.add(table.Leaks, 1, class...)
}

func (m *meter) node(e mortise.NodeEvent) {
	state := attribute.String("state", string(e.State))
	switch e.State {
	case mortise.RenewalAcknowledged:
		m.record(context.Background(), table.Renewal, e.Took.Seconds(), nil)
	case mortise.RenewalUnanswered:
		m.add(table.Unanswered, 1)
	case mortise.SessionOpened, mortise.SessionClosed, mortise.SessionExpired, mortise.SessionRestarted,
		mortise.SessionStopped:
		m.add(table.Sessions, 1, state)
	case mortise.LeaseSafe, mortise.LeaseJeopardy, mortise.LeaseLost:
		m.add(table.Lease, 1, state)
	case mortise.LeaderNew:
		m.add(table.Leader, 1)
	}
}

func (m *meter) synced(took time.Duration, err error) {
	outcome := map[bool]string{true: "synced", false: "failed"}[err == nil]
	m.record(context.Background(), table.Sync, took.Seconds(), nil, attribute.String("outcome", outcome))
}

func (m *meter) observe(status func() mortise.Status, r *running) (metric.Registration, error) {
	var all []metric.Observable
	for _, row := range table.Metrics() {
		if g := m.gauges[row.Name]; g != nil {
			all = append(all, g)
		}
	}
	with := metric.WithAttributes(m.attributes...)
	return m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, value := range figures(status()) {
			o.ObserveFloat64(m.gauges[name], value, with)
		}
		m.observeOldest(o, r.oldest(time.Now()))
		return nil
	}, all...)
}

// observeOldest reports 0 if there has been no hold yet, so that the metric always exists.
func (m *meter) observeOldest(o metric.Observer, ages map[string]float64) {
	if len(ages) == 0 {
		ages[""] = 0
	}
	for class, age := range ages {
		attributes := m.attributes
		if class != "" {
			attributes = append(slices.Clone(attributes), attribute.String("class", class))
		}
		o.ObserveFloat64(m.gauges[table.Oldest], age, metric.WithAttributes(attributes...))
	}
}

func figures(s mortise.Status) map[string]float64 {
	voters := 0
	for _, v := range s.Voters {
		if v.Votes {
			voters++
		}
	}
	f := map[string]float64{
		table.Held: float64(s.Held), table.Waiters: float64(max(s.Waiters-s.Standby, 0)),
		table.Standby: float64(s.Standby), table.Kept: float64(s.Sticky.Kept),
		table.KeptGrants: float64(s.Sticky.Grants), table.Recalls: float64(s.Sticky.Recalls),
		table.RecallTime: s.Sticky.RecallTime.Seconds(), table.InUse: float64(s.Sticky.InUse),
		table.LeaseLeft:   s.LeaseFor.Seconds(),
		table.LeaderKnown: truth(s.Leader != ""),
		table.LeaderHere:  truth(s.Leading), table.Voters: float64(voters), table.Time: s.Age.Seconds(),
		table.Available: s.Available.Seconds(), table.Failed: truth(s.Err != nil),
		table.Dropped: float64(s.HooksDropped),
	}
	low := s.Disk != nil && s.Disk.State == mortise.DiskLow
	f[table.DiskFault], f[table.DiskLow] = truth(s.Disk != nil && !low), truth(low)
	if s.Votes {
		f[table.Term], f[table.Starved] = float64(s.Term), s.Starved.Seconds()
	}
	// A removed voter that has not been replaced counts as missing too, although the group no
	// longer waits for it.
	if s.Health != nil {
		f[table.Members] = float64(s.Health.Members)
		f[table.Missing] = float64(max(len(s.Health.Missing), s.VotersWanted-voters, 0))
		f[table.Surplus], f[table.Diverged] = float64(s.Health.Surplus), 0
		for _, sentence := range s.Health.Differs {
			f[table.Diverged] += truth(strings.HasPrefix(sentence, "State: "))
		}
	}
	return f
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
