package mortisetest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// label is the key of the profiler label of a node's goroutines, which inherit it from Start.
const label = "mortisetest"

// settle is how long a test waits at its end for work that is still in progress, such as an
// UnlockSoon or a call whose context has just ended.
const settle = 5 * time.Second

func (c *Cluster) end() {
	if !c.options.MayHold && !c.t.Failed() { // after a failure, held locks are expected
		c.nothingHeld()
	}
	for i, p := range c.places {
		if p.node == nil {
			continue
		}
		if err := p.node.Close(); err != nil {
			c.t.Errorf("mortisetest: close node %d: %v", i, err)
		}
	}
	if left := c.goroutines(); left != "" {
		c.t.Errorf("mortisetest: all nodes are closed, but these of their goroutines remain:\n%s", left)
	}
}

func (c *Cluster) nothingHeld() {
	for _, i := range c.awake() {
		var s mortise.Status
		if !soon(func() bool { s = c.Node(i).Status(); return s.Held+s.Waiters == 0 || s.Err != nil }) {
			c.t.Errorf("mortisetest: at the end of the test node %d holds %d locks and %d calls wait for one%s: "+
				"unlock what was locked, or set Options.MayHold", i, s.Held, s.Waiters, c.keysOf(i))
		}
	}
}

func (c *Cluster) keysOf(i int) string {
	leader := c.leader()
	if leader < 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var keys []string
	for k, err := range c.Node(leader).List(ctx, "") {
		if err != nil || len(keys) == 10 {
			break
		}
		for _, s := range k.Queue {
			if s.Holder == c.name(i) && !s.Expired {
				keys = append(keys, fmt.Sprintf("%q", k.Key))
				break
			}
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return " (" + strings.Join(keys, ", ") + ")"
}

func (c *Cluster) goroutines() string {
	var left string
	soon(func() bool { left = labelled(c.label); return left == "" })
	return left
}

func labelled(mark string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("%q:%q", label, mark)) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

func soon(is func() bool) bool {
	for began := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(began) > settle {
			return false
		}
	}
	return true
}
