package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// quick is the time limit for one response in these tests. It is five times the documented limit,
// because the machine may be busy.
const quick = 15 * time.Second

func TestAStuckHolderIsTold(t *testing.T) {
	t.Parallel()
	nodes := startFleet(t, "orders-0", "orders-1", "orders-2")
	lock(t, nodes[1], mortise.Request{Key: "orders/42", Value: "charging card"})
	wait(t, nodes[0], "orders/42", 2)
	wait(t, nodes[2], "orders/42", 3)
	for i, node := range nodes {
		h := New(node, Options{Long: time.Millisecond})
		var what, next string
		eventually(t, fmt.Sprintf("node %d tells", i), func() (ok bool) {
			what, next, ok = status(t, h, "").found("held-long")
			return ok
		})
		wantText(t, what, "1 key is held for longer than", "orders/42 has been held by orders-1 for ", "5 wait",
			"charging card")
		wantText(t, next, "end the hold by force")
		_, page, _ := get(t, h, "/")
		wantText(t, page, "has been held by orders-1 for ", "charging card", "Waiting requests and their holders",
			"eu-1a", "eu-1b", "<svg",
			"orders-2")
	}
	if _, _, ok := status(t, New(nodes[0], Options{}), "").found("held-long"); ok {
		t.Error("a hold of a moment is called long")
	}
}

// Locks must still be granted. The page must name the missing voter, or the voter whose loss would
// end the group.
func TestADeadVoterIsTold(t *testing.T) {
	t.Parallel()
	for finding, change := range map[string]func(*mortise.Config){
		"voter-missing/": func(c *mortise.Config) { c.Dir = t.TempDir() },
		"cannot-lose":    func(c *mortise.Config) { c.SessionTTL = 2 * time.Second },
	} {
		nodes := startFleetOf(t, change, "orders-0", "orders-1", "orders-2")
		dead := 0
		for nodes[dead].Status().Leading {
			dead++
		}
		if err := nodes[dead].Close(); err != nil {
			t.Fatal(err)
		}
		node := nodes[(dead+1)%3]
		h := New(node, Options{})
		var what, next string
		eventually(t, finding+" is told", func() (ok bool) {
			what, next, ok = status(t, h, "").found(finding)
			return ok && strings.Contains(what, "orders-")
		})
		if next == "" {
			t.Error("no next step is told")
		}
		t.Log(what, next)
		if name := []string{"orders-0", "orders-1", "orders-2"}[dead]; finding == "voter-missing/" {
			wantText(t, what, "The voter "+name+" has been silent for ")
			eventually(t, "the table shows it", func() bool { return status(t, h, "").missing(name) })
		}
		eventually(t, "/readyz succeeds while one of three is dead", func() bool {
			answer, _, _ := get(t, h, "/readyz")
			return answer.StatusCode == http.StatusOK
		})
		lock(t, node, mortise.Request{Key: "goes on"})
	}
}

// Without a majority the page must be served as quickly as before, with the last data. /livez must
// succeed and /readyz must fail.
func TestALostQuorumIsTold(t *testing.T) {
	t.Parallel()
	nodes := startFleet(t, "orders-0", "orders-1", "orders-2")
	h := New(nodes[0], Options{})
	lock(t, nodes[0], mortise.Request{Key: "orders/42"})
	eventually(t, "all is well", func() bool { return strings.Contains(mustPage(t, h, "/"), "All is well") })
	for _, node := range nodes[1:] {
		if err := node.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var what, next string
	eventually(t, "the loss is told, and both are missed", func() bool {
		var ok bool
		what, next, ok = status(t, h, "").found("no-leader")
		return ok && strings.Contains(next, "orders-1 at ") && strings.Contains(next, "orders-2 at ")
	})
	wantText(t, what, "no lock is granted")
	wantText(t, next, "Bring back a majority of the voters")
	p := status(t, h, "")
	if p.Level != "broken" || len(p.Locks.Keys) != 1 || p.Locks.Error == "" {
		t.Errorf("%+v", p)
	}
	_, page, took := get(t, h, "/?prefix=ord")
	wantText(t, page, "orders/42", "ago. They may have changed.", "Bring back a majority")
	if took > quick {
		t.Errorf("the page took %v", took)
	}
	answer, body, took := get(t, h, "/readyz")
	if answer.StatusCode != http.StatusServiceUnavailable || took > quick/3 {
		t.Errorf("/readyz says %s after %v", answer.Status, took)
	}
	wantText(t, body, "not ready: ", "has no leader", nodes[1].Status().Address)
	if answer, body, _ := get(t, h, "/livez"); answer.StatusCode != http.StatusOK {
		t.Errorf("/livez says %s without a quorum: %s", answer.Status, body)
	}
}

// Each of two instances has long held a key that the other instance waits for.
func TestACircleIsSuspected(t *testing.T) {
	t.Parallel()
	nodes := startFleet(t, "orders-0", "orders-1")
	lock(t, nodes[0], mortise.Request{Key: "a"})
	lock(t, nodes[1], mortise.Request{Key: "b"})
	wait(t, nodes[0], "b", 1)
	wait(t, nodes[1], "a", 1)
	h := New(nodes[0], Options{Long: time.Millisecond})
	var p picture
	eventually(t, "the circle is shown", func() bool {
		p = status(t, h, "")
		return len(p.Circles) == 1 && len(p.Circles[0]) == 2
	})
	what, _, _ := p.found("deadlock/")
	wantText(t, what, "a is held by orders-0, which waits for b", "b is held by orders-1, which waits for a")
	if p := status(t, New(nodes[0], Options{}), ""); len(p.Circles) != 0 {
		t.Error("what has been held for a moment is called a circle")
	}
}

func mustPage(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	answer, body, _ := get(t, h, path)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, body)
	}
	return body
}

// The page lists holds that ended abnormally, the newest first. For a hold ended by force it must
// show the operator and the reason.
func TestAbnormalEndsAreTold(t *testing.T) {
	t.Parallel()
	nodes := startFleetOf(t, func(c *mortise.Config) { c.SessionTTL = 5 * time.Second }, "orders-0", "orders-1",
		"orders-2")
	h := New(nodes[0], Options{})
	if page := mustPage(t, h, "/"); strings.Contains(page, "Abnormal ends") {
		t.Error("there are abnormal ends before there was any hold")
	}
	forced := lock(t, nodes[1], mortise.Request{Key: "orders/42"})
	if _, err := nodes[2].ForceUnlock(t.Context(), "orders/42", forced.Token(), "stuck <b>since noon</b>"); err != nil {
		t.Fatal(err)
	}
	lock(t, nodes[1], mortise.Request{Key: "orders/7"})
	if err := nodes[1].Close(); err != nil { // the lock stays held until the session expires
		t.Fatal(err)
	}
	if _, err := nodes[2].Put(t.Context(), "orders/42", []byte("version <7>"), 0); err != nil {
		t.Fatal(err)
	}
	var p picture
	eventually(t, "both ends are told", func() bool {
		p = status(t, h, "")
		return len(p.Ends) == 2
	})
	if lost := p.Ends[0]; lost.Key != "orders/7" || lost.Holder != "orders-1" ||
		lost.Cause != string(mortise.OutcomeExpired) {
		t.Errorf("%+v", lost)
	}
	if by := p.Ends[1]; by.Key != "orders/42" || by.By != "orders-2" || by.Cause != string(mortise.OutcomeForced) ||
		by.Reason != "stuck <b>since noon</b>" {
		t.Errorf("%+v", by)
	}
	wantText(t, mustPage(t, h, "/?key=orders/42"), "Abnormal ends", "lost by orders-1",
		"ended by force on orders-2: “stuck &lt;b&gt;since noon", "version &lt;7&gt;")
}
