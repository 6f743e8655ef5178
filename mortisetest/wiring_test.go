package mortisetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/memnet"
)

// idle returns a cluster whose nodes do not run.
func idle(t testing.TB, nodes int, o Options) *Cluster {
	c := &Cluster{t: t, options: o, net: memnet.New(), cuts: map[route]bool{}, closed: map[route]bool{}}
	for i := range nodes {
		c.places = append(c.places, &place{host: fmt.Sprint("10.0.0.", i+1), machine: newMachine()})
	}
	return c
}

func TestTheConfigurationOfANode(t *testing.T) {
	const refused = "mortisetest: Options.Configure of node 1 has set Bind, Advertise, Join or JoinFunc"
	secured := func(c *mortise.Config) bool { return !c.Insecure }
	for what, c := range map[string]struct {
		nodes  int
		change func(*mortise.Config)
		want   string // the failure, or "" for none
		is     func(*mortise.Config) bool
	}{
		"as it is": {3, nil, "", func(c *mortise.Config) bool {
			return c.Name == "node-1" && c.Bind == "10.0.0.2:7947" && c.Replicas == 3 && len(c.Join) == 3 && c.Insecure &&
				c.Founders == nil && c.Grace == -1
		}},
		"16 nodes": {16, nil, "", func(c *mortise.Config) bool { return c.Replicas == 16 && c.Founders == nil }},
		"17 nodes": {17, nil, "", func(c *mortise.Config) bool {
			return c.Replicas == 0 && slices.Equal(c.Founders, []string{"node-0", "node-1", "node-2"})
		}},
		"its name": {2, func(c *mortise.Config) { c.Name = "n" }, "",
			func(c *mortise.Config) bool { return c.Name == "n" && c.Insecure }},
		"a logger": {2, func(c *mortise.Config) { c.Logger = nil }, "",
			func(c *mortise.Config) bool { return c.Logger != nil }},
		"a secret":  {2, func(c *mortise.Config) { c.Secret = "s" }, "", secured},
		"TLS":       {2, func(c *mortise.Config) { c.TLS = &tls.Config{} }, "", secured},
		"TLS files": {2, func(c *mortise.Config) { c.TLSFiles.CA = "ca" }, "", secured},
		"Bind":      {2, func(c *mortise.Config) { c.Bind = ":1" }, refused, nil},
		"Advertise": {2, func(c *mortise.Config) { c.Advertise = "h:1" }, refused, nil},
		"Join":      {2, func(c *mortise.Config) { c.Join = c.Join[:1] }, refused, nil},
		"JoinFunc": {2, func(c *mortise.Config) {
			c.JoinFunc = func(context.Context) ([]string, error) { return nil, nil }
		}, refused, nil},
	} {
		failures := record(t, func(tb testing.TB) {
			o := Options{}
			if c.change != nil {
				o = configured(c.change)
			}
			if got := idle(tb, c.nodes, o).config(1); c.is != nil && !c.is(&got) {
				t.Errorf("%s: %+v", what, got)
			}
		})
		if c.want == "" && len(failures) > 0 {
			t.Errorf("%s: %q", what, failures)
		} else if c.want != "" {
			wantFailures(t, what, failures, c.want)
		}
	}
	if c := idle(t, 1, Options{}).config(0); c.Replicas != 0 || c.Join != nil {
		t.Errorf("alone: %+v", c)
	}
}

// A direction is closed while it is cut, or while a node at one of its ends is paused.
func TestWhichDirectionsAreClosed(t *testing.T) {
	both := func(pairs ...[2]int) (all []route) {
		for _, p := range pairs {
			all = append(all, route{p[0], p[1]}, route{p[1], p[0]})
		}
		return all
	}
	for what, c := range map[string]struct {
		do   func(c *Cluster)
		want []route
	}{
		"Isolate":   {func(c *Cluster) { c.Isolate(0, 1) }, both([2]int{0, 2}, [2]int{0, 3}, [2]int{1, 2}, [2]int{1, 3})},
		"Cut":       {func(c *Cluster) { c.Cut(0, 2) }, both([2]int{0, 2})},
		"one way":   {func(c *Cluster) { c.CutOneWay(0, 2) }, []route{{0, 2}}},
		"healed":    {func(c *Cluster) { c.Isolate(0); c.Cut(1, 2); c.Heal() }, nil},
		"cut twice": {func(c *Cluster) { c.Cut(0, 1); c.Heal(); c.CutOneWay(1, 0) }, []route{{1, 0}}},
		"paused": {func(c *Cluster) { c.places[1].paused = true; c.rewire() },
			both([2]int{0, 1}, [2]int{2, 1}, [2]int{3, 1})},
		"resumed beside a cut": {func(c *Cluster) {
			c.Cut(0, 1)
			c.places[1].paused = true
			c.rewire()
			c.places[1].paused = false
			c.rewire()
		}, both([2]int{0, 1})},
	} {
		cluster := idle(t, 4, Options{})
		c.do(cluster)
		got, want := map[route]bool{}, map[route]bool{}
		for r, closed := range cluster.closed {
			if closed {
				got[r] = true
			}
		}
		for _, r := range c.want {
			want[r] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}

func TestNodesThatAreNotThereAreNamed(t *testing.T) {
	for what, do := range map[string]func(c *Cluster){
		"Isolate": func(c *Cluster) { c.Isolate(0, 4) }, "Cut": func(c *Cluster) { c.Cut(4, 0) },
		"Cut to": func(c *Cluster) { c.Cut(0, 4) }, "CutOneWay": func(c *Cluster) { c.CutOneWay(4, 0) },
		"CutOneWay to": func(c *Cluster) { c.CutOneWay(0, 4) }, "Node": func(c *Cluster) { c.Node(4) },
		"Lose": func(c *Cluster) { c.Lose(4) }, "Leap": func(c *Cluster) { c.Leap(4, 1) },
		"Drift": func(c *Cluster) { c.Drift(4, 1) }, "AwaitHolder": func(c *Cluster) { c.AwaitHolder("k", 4) },
	} {
		var c *Cluster
		failures := record(t, func(t testing.TB) {
			c = idle(t, 4, Options{})
			do(c)
		})
		wantFailures(t, what, failures, "there is no node 4 in a cluster of 4")
		if len(c.cuts)+len(c.closed) != 0 && what != "Isolate" { // which begins with the nodes that are there
			t.Errorf("%s: cut are %v", what, c.cuts)
		}
	}
	for nodes, want := range map[int]string{0: "0 nodes", maxNodes + 1: "257 nodes"} {
		wantFailures(t, want, record(t, func(t testing.TB) { New(t, nodes) }), want)
	}
	if !reflect.DeepEqual(idle(t, 3, Options{}).awake(), []int(nil)) {
		t.Error("a node that does not run is awake")
	}
}
