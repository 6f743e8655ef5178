package mortiseotel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

// TestEachInstrumentIsARowOfTheTable compares all instruments with the table: name, kind, unit,
// help and bounds.
func TestEachInstrumentIsARowOfTheTable(t *testing.T) {
	var all metricdata.ResourceMetrics
	synctest.Test(t, func(t *testing.T) {
		w := newTold(t, func(*Options) {})
		for _, s := range scenes() {
			s.do(w)
		}
		r, err := w.meter.observe(func() mortise.Status {
			return mortise.Status{Member: mortise.Member{Votes: true}, Health: &mortise.Health{}}
		}, &w.running)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.reader.Collect(t.Context(), &all), r.Unregister()); err != nil {
			t.Fatal(err)
		}
	})
	got, want := []table.Metric{}, table.Metrics()
	for _, m := range all.ScopeMetrics[0].Metrics {
		row := table.Metric{Name: m.Name, Unit: m.Unit, Help: m.Description}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			row.Kind = table.Counter
		case metricdata.Histogram[float64]:
			row.Kind, row.Bounds = table.Histogram, data.DataPoints[0].Bounds
		case metricdata.Gauge[float64]:
			row.Kind = table.Gauge
		case metricdata.Sum[float64]:
			row.Kind = table.Sum
		}
		got = append(got, row)
	}
	for _, rows := range [][]table.Metric{got, want} {
		slices.SortFunc(rows, func(a, b table.Metric) int { return strings.Compare(a.Name, b.Name) })
		for i := range rows {
			rows[i].Label, rows[i].Values = "", nil // TestEachCounterBeginsAtZero has them
		}
	}
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("the instruments are\n%s\nwant\n%s", g, w)
	}
	if name := all.ScopeMetrics[0].Scope.Name; name != scope {
		t.Errorf("the scope is %s", name)
	}
}

// TestEachCounterBeginsAtZero checks that each series of the table exists before its first event,
// and no other.
func TestEachCounterBeginsAtZero(t *testing.T) {
	var want []string
	for _, row := range table.Metrics() {
		if row.Kind != table.Counter {
			continue
		}
		if row.Label == "" {
			want = append(want, row.Name+" node=a 0")
		}
		for _, value := range row.Values {
			want = append(want, fmt.Sprintf("%s node=a,%s=%s 0", row.Name, row.Label, value))
		}
	}
	slices.Sort(want)
	got := newTold(t, func(*Options) {}).series(t, func(name, labels string, value any) string {
		return fmt.Sprint(name, " ", labels, " ", value)
	})
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhatIsObserved compares the series that are read from a node with the figures of its status,
// and with the ages of its holds.
func TestWhatIsObserved(t *testing.T) {
	for what, c := range map[string]struct {
		begin func(r *running, now time.Time)
		want  []string
	}{
		"no hold yet": {func(*running, time.Time) {}, []string{"node=a 0"}},
		"two classes, one without a hold": {func(r *running, now time.Time) {
			r.begin(1, "orders", now.Add(-time.Hour))
			r.begin(2, "stock", now)
			r.end(2)
		}, []string{"class=orders,node=a 3600", "class=stock,node=a 0"}},
		"no class": {func(r *running, now time.Time) { r.begin(1, "", now.Add(-time.Hour)) }, []string{"node=a 3600"}},
	} {
		w := newTold(t, func(*Options) {})
		s := mortise.Status{Member: mortise.Member{Votes: true}, Held: 7, Health: &mortise.Health{Members: 3}}
		r, err := w.meter.observe(func() mortise.Status { return s }, &w.running)
		if err != nil {
			t.Fatal(err)
		}
		c.begin(&w.running, time.Now())
		var want []string
		for name, value := range figures(s) {
			want = append(want, fmt.Sprint(name, " node=a ", value))
		}
		for _, line := range c.want {
			want = append(want, table.Oldest+" "+line)
		}
		slices.Sort(want)
		gauges := func() []string {
			return w.series(t, func(name, labels string, value any) string {
				if v, is := value.(float64); is {
					return fmt.Sprintf("%s %s %.0f", name, labels, v)
				}
				return ""
			})
		}
		if got := gauges(); !slices.Equal(got, want) {
			t.Errorf("%s: %q\nwant %q", what, got, want)
		}
		if err := r.Unregister(); err != nil {
			t.Error(err)
		}
		if got := gauges(); len(got) > 0 {
			t.Errorf("%s: after the end it reads %q", what, got)
		}
	}
}

// TestTheAttributesAreOnesOwn changes the attributes of the options after New.
func TestTheAttributesAreOnesOwn(t *testing.T) {
	own := make([]attribute.KeyValue, 1, 9)
	own[0] = attribute.String("node", "a")
	w := newTold(t, func(o *Options) { o.Attributes = own })
	own[0] = attribute.String("node", "b")
	w.Synced(time.Second, nil)
	if got := w.metrics(t); !slices.Equal(got, []string{"log.sync.duration node=a,outcome=synced 1x 1"}) {
		t.Errorf("%q", got)
	}
}
