package e2e

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestOtherRulesAreRefused starts an instance whose build has the version of the group's lock rules
// and other rules under it, as during a roll-out between two unreleased commits. It links with no
// instance, is never Ready and founds no second group. Both sides say why, and what to do. Then the
// step is carried out.
func TestOtherRulesAreRefused(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		logs, into := logged(slog.LevelWarn)
		f := newFleet(t)
		other := false
		f.alter = func(e *outside.World) {
			if other {
				e.Fingerprints = lockfsm.Fingerprints()
				e.Fingerprints[len(e.Fingerprints)-1]++
			}
		}
		begin := func(i int) {
			c := f.config(i, 3)
			into(&c)
			f.start(i, c)
		}
		for i := range 3 {
			begin(i)
		}
		f.ready()
		i := f.follower()
		held := f.lock(f.leader(), "held")
		f.crash(i)
		time.Sleep(time.Minute) // the group goes on without it
		for _, l := range logs {
			l.take()
		}
		other = true
		begin(i)
		node := f.nodes[i]
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		err := node.Ready(ctx)
		const text, step = "both builds have lock rules 1, and they are not the same rules",
			"the builds are from two unreleased commits; deploy one of them everywhere"
		if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), step) {
			t.Errorf("Ready: %v", err)
		}
		if s := node.Status(); !strings.Contains(s.Waiting, text) || s.Votes || s.Group != "" {
			t.Errorf("Status: %v", s)
		}
		leader := f.nodes[f.leader()]
		got := strings.Join(logs[leader.config.Name].take(), "")
		if !strings.Contains(got, text) || !strings.Contains(got, step) {
			t.Errorf("the leader's log:\n%s", got)
		}
		if err := held.Err(); err != nil {
			t.Errorf("a lock of the group: %v", err)
		}
		unlock(t, held)
		other = false // the step: deploy the build of the others
		f.close(i)
		begin(i)
		f.ready()
	})
}
