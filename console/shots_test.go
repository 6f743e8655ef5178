package console

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/tick"
)

// TestBrowserShowsTheStates loads the page in a real browser in ten states. It makes the pictures
// of docs/OPERATION.md: go test ./console -run TestBrowserShowsTheStates -shots ../docs/pictures
func TestBrowserShowsTheStates(t *testing.T) {
	slow.Nightly(t)
	t.Parallel()
	c := chromium.Open(t)
	c.Screen(1200, 900, false)
	shows := func(name, url, finding, text, not string) {
		t.Helper()
		c.Visit(url)
		c.Until(name+": "+finding, `document.getElementById("findings").dataset.state.startsWith("`+finding+`")`)
		if text != "" {
			c.Until(name+": "+text, `document.getElementById("findings").textContent.includes("`+text+`")`)
		}
		if not != "" {
			c.Until(name+": not "+not, `!document.getElementById("content").textContent.includes("`+not+`")`)
		}
		if !strings.HasSuffix(name, "-key") {
			c.Picture(*shots, "state-"+name, 800, 0.75)
		}
	}
	busy := newPastNode(queue("orders/42: orders-2 | orders-1 orders-1 orders-0", time.Now()),
		queue("exports/nightly: orders-1 |", time.Now()), queue("tenants/acme/import: orders-0 |", time.Now()))
	shows("hour", mounted(t, busy, Options{Long: 2 * time.Hour, History: anHour(), Console: func(m mortise.Member) string {
		return "http://" + m.Name + ":9000/"
	}}), "fine", "", "force")
	const secret, other = "8f1b6d0ce94a2753be60f7a1d3c8952e4b7f09a6c1d2e3540987ab6cdef31275",
		"1d2e3540987ab6cdef312758f1b6d0ce94a2753be60f7a1d3c8952e4b7f09a6c"
	var config mortise.Config // the configuration of the last instance, for instances that are started later
	durable := func(c *mortise.Config) {
		c.SessionTTL = 20 * time.Second // within which a restarted holder is shown, on a busy machine too
		c.Secret, config, c.Dir = secret, *c, t.TempDir()
	}
	start := func(name, secret string) *mortise.Node {
		later := config
		later.Name, later.Secret = name, secret
		node, err := mortise.Start(t.Context(), later)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = node.Close() })
		return node
	}
	force := Options{Long: time.Second, MayForce: func(*http.Request) bool { return true }}

	nodes := startFleetOf(t, durable, "orders-0", "orders-1", "orders-2")
	holder := start("billing-0", secret) // has no vote
	ready(t, holder)
	url := mounted(t, nodes[0], force)
	shows("healthy", url, "fine", "", "force")
	var all sync.WaitGroup
	defer all.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for _, node := range nodes {
		all.Go(func() {
			_ = election.New(node, "leader", election.Options{}).Run(ctx, "10.0.0.7:80",
				func(ctx context.Context, _ *election.Leadership) error {
					<-ctx.Done()
					return nil
				})
		})
	}
	time.Sleep(2 * force.Long)
	shows("election", url, "fine", "", "force")
	for _, node := range nodes {
		all.Go(func() {
			_ = tick.Run(ctx, node, tick.Job{Name: "report", Schedule: tick.Every(time.Hour),
				Run: func(context.Context, tick.Tick) error { return nil }})
		})
	}
	c.Until("tick's keys are left out",
		`document.body.textContent.includes("that package tick holds for itself left out")`)
	shows("tick", url, "fine", "", "force")
	lock(t, holder, mortise.Request{Key: "orders/42", Value: "charging card"})
	wait(t, nodes[0], "orders/42", 2)
	wait(t, nodes[2], "orders/42", 3)
	shows("contended", mounted(t, nodes[0], Options{}), "fine", "", "force")
	time.Sleep(2 * force.Long)
	shows("stuck", url, "held-long", "orders/42 has been held by billing-0", "")
	shows("stuck-key", url+"?key=orders/42", "held-long", "orders/42 has been held by billing-0", "")
	if err := holder.Close(); err != nil { // the lock stays held until the session expires, as after the end of a process
		t.Fatal(err)
	}
	ready(t, start("billing-0", secret))
	shows("restarted", url, "held-earlier", "held by an earlier incarnation of an instance that was restarted",
		"end the hold by force")
	shows("restarted-key", url+"?key=orders/42", "held-earlier", "held by an earlier incarnation", "End this hold")
	shows("other-secret", mounted(t, start("orders-3", other), Options{}), "other-secret",
		"the other side has another secret", "Nothing has been seen: mortise")
	c.Visit(url)
	c.Until("the earlier incarnation is over",
		`!document.getElementById("findings").dataset.state.includes("held-earlier")`)
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	shows("voter-lost", url, "voter-missing", "The voter orders-1 has been silent for", "")
	if err := nodes[2].Close(); err != nil {
		t.Fatal(err)
	}
	c.Visit(url)
	c.Until("gossip has noticed it too", `document.querySelectorAll("#members .missing").length === 2`)
	shows("quorum-lost", url, "no-leader", "Bring back a majority of the voters", "End this hold")
	shows("quorum-lost-key", url+"?key=orders/42", "no-leader", "Bring back a majority of the voters", "End this hold")
	c.Silent()
}
