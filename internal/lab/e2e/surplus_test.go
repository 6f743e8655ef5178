package e2e

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestMoreInstancesThanReplicas runs two instances with Replicas 2. Restarts are no surplus, though
// each old session stands for 30 s more. Scaled to five, the leader reports the number and the
// names to all, logs them once, and no surplus instance gets a replica. Scaled back, all is well.
func TestMoreInstancesThanReplicas(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		logs, into := logged(slog.LevelInfo)
		f := newFleet(t)
		begin := func(i int) {
			c := f.config(i, 2)
			into(&c)
			c.SessionTTL = 30 * time.Second
			f.start(i, c)
		}
		begin(0)
		begin(1)
		f.ready()
		health := func(i int) mortise.Health {
			h, err := f.nodes[i].Health(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		for range 3 {
			i := f.follower()
			f.crash(i)
			begin(i)
			f.ready()
			for range 40 {
				time.Sleep(time.Second)
				if s := health(i).Surplus; s != 0 {
					t.Fatalf("a restart: %d more", s)
				}
			}
		}
		before := f.nodes[f.leader()].Status().Voters
		for i := 2; i < 5; i++ {
			begin(i)
		}
		f.ready()
		time.Sleep(21 * time.Second)
		const text = "5 instances run (node-0, node-1, node-2, node-3, node-4), but Replicas says 2: in a cut of the " +
			"network a second group can be founded, and both groups grant the same locks"
		const next = "set Replicas to 5 on all instances and roll that out, or scale back to 2"
		for i := range 5 {
			h := health(i)
			if h.Surplus != 3 || h.Advice != next || !slices.Contains(h.Differs, "Surplus: "+text+"; "+next) ||
				h.DifferStep(h.Differs[0]) != next || !strings.Contains(h.String(), text) {
				t.Errorf("node %d: %v", i, h)
			}
		}
		time.Sleep(5 * time.Minute)
		if after := f.nodes[f.leader()].Status().Voters; len(after) != len(before) {
			t.Errorf("the voters were %+v and are %+v", before, after)
		}
		for i := 2; i < 5; i++ {
			f.crash(i)
		}
		time.Sleep(2 * time.Second)
		if h := health(0); h.Surplus != 0 {
			t.Errorf("scaled back: %v", h)
		}
		got := strings.Join(logs[f.nodes[f.leader()].config.Name].take(), "")
		if strings.Count(got, text) != 1 || !strings.Contains(got, "level=WARN msg=\""+text) ||
			!strings.Contains(got, next) || strings.Count(got, "no more instances run than Replicas says") != 1 {
			t.Errorf("the leader's log:\n%s", got)
		}
	})
}
