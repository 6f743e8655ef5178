package mortisecollector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
)

// All keys of a configuration reach the node, unknown ones are refused, and the secret is in no
// printed configuration.
func TestConfig(t *testing.T) {
	const secret = "d1fa7b0c0b1e4f6f9d3a5c7e9b1d3f5a"
	read := func(keys map[string]any) (*Config, error) {
		c := NewFactory().CreateDefaultConfig().(*Config)
		return c, confmap.NewFromStringMap(keys).Unmarshal(c)
	}
	c, err := read(map[string]any{"key": "k", "name": "n", "cluster": "c", "bind": "127.0.0.1:1", "advertise": "a:1",
		"join": []string{"b:1"}, "replicas": 3, "zone": "z", "secret": secret, "session_ttl": "5s"})
	if err != nil {
		t.Fatal(err)
	}
	n := c.node(nil)
	got := fmt.Sprint(c.Key, n.Name, n.Cluster, n.Bind, n.Advertise, n.Join, n.Replicas, n.Zone, n.Secret, n.SessionTTL)
	want := fmt.Sprint("k", "n", "c", "127.0.0.1:1", "a:1", []string{"b:1"}, 3, "z", secret, 5*time.Second)
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	out := confmap.New()
	if err := out.Marshal(c); err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprint(out.ToStringMap()), fmt.Sprintf("%v %+v %#v %s", c, *c, *c, c.Secret)} {
		if strings.Contains(printed, secret) || !strings.Contains(printed, hidden) {
			t.Errorf("printed: %s", printed)
		}
	}
	if _, err := read(map[string]any{"keys": "k"}); err == nil {
		t.Error("an unknown key is accepted")
	}
	for _, keys := range []map[string]any{
		{"join": []string{"b:1"}},
		{"join": []string{"b:1"}, "replicas": 3, "founders": []string{"x"}},
	} {
		c, err := read(keys)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "exactly one of replicas and founders") {
			t.Errorf("%v: %v", keys, err)
		}
	}
}

// A factory refuses the configuration of the other one.
func TestTheOtherConfig(t *testing.T) {
	own, shared := NewFactory(), NewFactoryFor(nil)
	for want, create := range map[string]func(component.ID) error{
		"*mortisecollector.SharedConfig, not a *Config": func(id component.ID) error {
			_, err := own.Create(t.Context(), extension.Settings{ID: id}, shared.CreateDefaultConfig())
			return err
		},
		"*mortisecollector.Config, not a *SharedConfig": func(id component.ID) error {
			_, err := shared.Create(t.Context(), extension.Settings{ID: id}, own.CreateDefaultConfig())
			return err
		},
	} {
		if err := create(component.NewID(own.Type())); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An extension of NewFactory starts its node and lets it leave. An error names the field.
func TestANodeOfItsOwn(t *testing.T) {
	w := newWatch(t)
	h := newHost(t, NewFactory(), func(c component.Config) { c.(*Config).Key = "own" })
	h.run(t, fakeReceiver{watch: w, kind: "objects", at: "0"})
	node := h.elector().node
	if err := node.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for !w.isRunning("objects@0") {
		if t.Context().Err() != nil {
			t.Fatal("it does not lead")
		}
		time.Sleep(time.Millisecond)
	}
	info, err := node.Peek(t.Context(), "own")
	if err != nil || info.Held != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	h.shutDown(t)
	if node.Err() == nil || w.count() != 0 {
		t.Error("the node or a receiver runs after the shutdown")
	}
	bad := newHost(t, NewFactory(), func(c component.Config) { c.(*Config).Bind = "nonsense" })
	if err := bad.elector().Start(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Bind") {
		t.Errorf("%v", err)
	}
}
