package transport

import (
	"context"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// TestDefaultsOfAConfig compares all numbers of a Config, without options and with each option
// alone. A number that is not positive means the default.
func TestDefaultsOfAConfig(t *testing.T) {
	want := Config{Life: 1, MessageBytes: 64 << 20, QueueBytes: 64 << 20, RaftMessages: 4096, RaftBytes: 64 << 20,
		SnapshotBytes: 1 << 30, Links: 65536, Conns: 65536, Strangers: 1024, AskConns: 1024, DialTimeout: 5 * time.Second}
	check := func(what string, c, want Config) {
		t.Helper()
		got := c.withDefaults()
		if got.Logger == nil || got.Random == nil || got.Wall == nil || c.Logger != nil && got.Logger != c.Logger {
			t.Errorf("%s: logger %v, random %t, wall %t", what, got.Logger, got.Random == nil, got.Wall == nil)
		}
		if got.Logger, got.Random, got.Wall = nil, nil, nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("nothing is set", Config{}, want)
	check("a logger", Config{Logger: slog.New(slog.DiscardHandler)}, want)
	for i := range reflect.TypeFor[Config]().NumField() {
		f := reflect.TypeFor[Config]().Field(i)
		for _, value := range []int64{-1, 1, 7, 12345} {
			var c Config
			with := want
			switch f.Type.Kind() {
			case reflect.Int, reflect.Int64:
				reflect.ValueOf(&c).Elem().Field(i).SetInt(value)
				if value > 0 {
					reflect.ValueOf(&with).Elem().Field(i).SetInt(value)
				}
			case reflect.Uint32, reflect.Uint64:
				reflect.ValueOf(&c).Elem().Field(i).SetUint(uint64(value + 1))
				reflect.ValueOf(&with).Elem().Field(i).SetUint(uint64(max(value+1, 1)))
			default:
				continue
			}
			check(f.Name, c, with)
		}
	}
	called := false
	own := Config{Random: func([]byte) { called = true },
		Wall: func() time.Time { return time.Unix(7, 0) }}.withDefaults()
	if own.Random(nil); !called || own.Wall().Unix() != 7 {
		t.Errorf("functions of the user are replaced: %t, %v", called, own.Wall())
	}
	zeros := make([]byte, 64)
	Config{}.withDefaults().Random(zeros)
	if strings.Trim(string(zeros), "\x00") == "" {
		t.Error("random bytes are all zero")
	}
}

type noHandler struct{ Handler }

// TestEachMistakeOfAConfigIsNamedAlone has one mistake in each row.
func TestEachMistakeOfAConfigIsNamedAlone(t *testing.T) {
	good := func() Config {
		return Config{Cluster: "c", Self: Self{Key: nodeid.NewKey(func(b []byte) { b[0] = 1 })}, Listener: Deaf(),
			Dial: func(context.Context, string) (net.Conn, error) { return nil, ErrSilent }, Handler: noHandler{}}
	}
	if err := good().validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"Cluster is empty": func(c *Config) { c.Cluster = "" }, "Cluster is longer": func(c *Config) {
			c.Cluster = strings.Repeat("c", 256)
		},
		"Self.Key": func(c *Config) { c.Self.Key = nodeid.Key{} }, "Listener": func(c *Config) { c.Listener = nil },
		"Dial": func(c *Config) { c.Dial = nil }, "Handler": func(c *Config) { c.Handler = nil },
		"Services.Intercept": func(c *Config) { c.Services.List = append(c.Services.List, Service{}) },
	} {
		c := good()
		change(&c)
		if err := c.validate(); err == nil || !strings.HasPrefix(err.Error(), "transport: Config."+want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
	limits.AtMost(t, "maxLabel", maxLabel, func(n int) bool {
		c := good()
		c.Cluster = strings.Repeat("c", n)
		return c.validate() == nil
	})
}
