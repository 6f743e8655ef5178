package main

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

func TestACrowdAttaches(t *testing.T) {
	for _, name := range []string{"mortise", "mortise-tls"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p, _ := peerNamed(name)
			cluster, err := p.Open(ctx, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := cluster.Close(); err != nil {
					t.Error(err)
				}
			}()
			text, err := describeGroup(cluster.(members)[0])
			if err != nil {
				t.Fatal(err)
			}
			var g groupAnswer
			if err := json.Unmarshal([]byte(text), &g); err != nil || len(g.Voters) != membersOf {
				t.Fatal(text, err)
			}
			c, err := openCrowd(ctx, g, encrypted(p), 0, 20)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			if len(c.attached) != 20 {
				t.Errorf("%d of 20 are attached", len(c.attached))
			}
			c.reset()
			go func() {
				for i := range c.lights {
					time.Sleep(5 * time.Millisecond)
					c.changed(i, c.lights[i].client.Status().Phase)
				}
			}()
			r, err := c.returns(ctx, 0)
			if err != nil || len(r.Waits) == 0 || r.Last.IsZero() {
				t.Errorf("%d waits, last at %v: %v", len(r.Waits), r.Last, err)
			}
		})
	}
}

func TestInstancesStartAtOnce(t *testing.T) {
	p, _ := peerNamed("mortise-tls")
	x, err := coldstart(6)(t.Context(), &Run{Peer: p, Dir: t.TempDir()})
	if err != nil || x.Count != 6 || x.Took == 0 {
		t.Errorf("%+v, %v", x, err)
	}
}
