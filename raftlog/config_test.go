package raftlog

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// TestDefaultsAreThoseOfTheDocument compares all numbers of a Config, without options and with each
// option alone. The rest of the Config stays as it was.
func TestDefaultsAreThoseOfTheDocument(t *testing.T) {
	want := Config{Tick: 50 * time.Millisecond, ElectionTicks: 10, HeartbeatTicks: 1, EntriesInFlight: 2,
		QueueBytes: 64 << 20, SnapshotBytes: 4 << 20, KeepEntries: 4096}
	check := func(what string, c, want Config) {
		t.Helper()
		got := c.withDefaults()
		if got.Logger == nil || got.Clock == nil || c.Logger != nil && got.Logger != c.Logger ||
			c.Clock != nil && got.Clock != c.Clock || c.Logger == nil && got.Logger != slog.Default() {
			t.Errorf("%s: logger %v, clock %v", what, got.Logger, got.Clock)
		}
		if got.Logger, got.Clock = nil, nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("nothing is set", Config{}, want)
	check("a logger", Config{Logger: quiet}, want)
	check("a clock", Config{Clock: clock.Monotonic()}, want)
	for i := range reflect.TypeFor[Config]().NumField() {
		f := reflect.TypeFor[Config]().Field(i)
		for _, value := range []int64{-1, 1, 7, 12345} {
			var c Config
			with := want
			set := func(c *Config) { reflect.ValueOf(c).Elem().Field(i).SetInt(value) }
			switch f.Type.Kind() {
			case reflect.Int, reflect.Int64:
				set(&c)
				set(&with)
				check(f.Name, c, with)
			}
		}
	}
	kept := Config{Group: 1, ID: 2}
	if got := kept.withDefaults(); got.Group != 1 || got.ID != 2 {
		t.Errorf("group %d, ID %d", got.Group, got.ID)
	}
}
