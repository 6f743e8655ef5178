package hosts

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/mortisetest"
)

// grafanaLead has the methods of EvaluationCoordinator in grafana/grafana,
// pkg/services/ngalert/evaluation_runner.go. At 44a342436791dc5f8c45658569b98891d54a97ac the
// interface has only Updates; before, it also had ShouldEvaluate. Grafana's own coordinator takes
// the first peer that an instance sees, so two that do not see each other both evaluate.
//
// Grafana does not report that its evaluation has stopped. So when an instance hands over in good
// order, an evaluation that has begun may end beside the first one of the next instance.
type grafanaLead struct {
	mu      sync.Mutex // guards the fields below
	leads   bool
	changed chan struct{} // closed when leads changes
}

func newGrafanaLead() *grafanaLead { return &grafanaLead{changed: make(chan struct{})} }

// Run takes part in the election until ctx ends.
func (g *grafanaLead) Run(ctx context.Context, node *mortise.Node) error {
	return election.New(node, "grafana/alerting", election.Options{}).Run(ctx, "",
		func(ctx context.Context, _ *election.Leadership) error {
			g.set(true)
			defer g.set(false)
			<-ctx.Done()
			return nil
		})
}

func (g *grafanaLead) set(leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leads = leads
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *grafanaLead) now() (leads bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leads, g.changed
}

// ShouldEvaluate reports whether this instance evaluates the alert rules.
func (g *grafanaLead) ShouldEvaluate() bool {
	leads, _ := g.now()
	return leads
}

// Updates emits the present decision at once, and then each change. If the decision changes before
// the caller has received it, the caller gets the newer one. The channel is closed when ctx is
// done.
func (g *grafanaLead) Updates(ctx context.Context) <-chan bool {
	updates := make(chan bool)
	go func() {
		defer close(updates)
		for first, last := true, false; ; {
			leads, changed := g.now()
			out := updates
			if !first && leads == last {
				out = nil
			}
			select {
			case out <- leads:
				first, last = false, leads
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return updates
}

func TestGrafanaEvaluatesInOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		var instances []*grafanaLead
		var updates []<-chan bool
		for i := range cluster.Len() {
			lead := newGrafanaLead()
			instances, updates = append(instances, lead), append(updates, lead.Updates(ctx))
			if <-updates[i] {
				t.Error("an instance evaluates before it takes part")
			}
			all.Go(func() {
				err := lead.Run(ctx, cluster.Node(i))
				if !errors.Is(err, context.Canceled) && !errors.Is(err, mortise.ErrClosed) {
					t.Error(err)
				}
			})
		}
		await := func() (leader int) {
			t.Helper()
			select {
			case is := <-updates[0]:
				leader = 0
				want(t, is)
			case is := <-updates[1]:
				leader = 1
				want(t, is)
			case is := <-updates[2]:
				leader = 2
				want(t, is)
			case <-time.After(time.Minute):
				t.Fatal("no decision changes")
			}
			return leader
		}
		first := await()
		cluster.Kill(first)
		if <-updates[first] {
			t.Error("the killed instance evaluates")
		}
		second := await()
		for i, lead := range instances {
			if lead.ShouldEvaluate() != (i == second) {
				t.Errorf("instance %d: %v, the leader is %d", i, lead.ShouldEvaluate(), second)
			}
		}
		late := instances[second].Updates(ctx)
		if !<-late {
			t.Error("a late caller does not get the present decision")
		}
		synctest.Wait()
		select {
		case is := <-late:
			t.Errorf("%v again, without a change", is)
		default:
		}
		cancel()
		all.Wait()
		synctest.Wait()
		for {
			if _, open := <-late; !open {
				break
			}
		}
	})
}

func want(t *testing.T, is bool) {
	t.Helper()
	if !is {
		t.Error("an instance stops that did not evaluate")
	}
}
