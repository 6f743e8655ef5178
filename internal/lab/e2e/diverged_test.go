package e2e

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/raftlog"
)

// TestAReplicaThatDivergesIsFound lets one replica omit one log entry, as a defect or a damaged
// memory might, on a follower and on the leader. It is found within two seconds, although no later
// command touches what was omitted. It names the cause and the next step, and holds nothing. The
// others go on: their locks stay, and the group grants.
func TestAReplicaThatDivergesIsFound(t *testing.T) {
	for _, leads := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			logs, into := logged(slog.LevelError)
			f := newFleet(t)
			omits := make([]atomic.Bool, 3)
			starting := 0
			f.alter = func(e *outside.World) {
				omit := &omits[starting]
				e.Alter = func(batch []byte) []byte {
					if omit.CompareAndSwap(true, false) {
						return nil
					}
					return batch
				}
			}
			for starting = range 3 {
				c := f.config(starting, 3)
				into(&c)
				f.start(starting, c)
			}
			f.ready()
			bad := f.follower()
			if leads {
				bad = f.leader()
			}
			good := (bad + 1) % 3
			mine, kept := f.lock(bad, "mine"), f.lock(good, "kept")
			time.Sleep(3 * time.Second)
			for i := range 3 {
				if err := f.nodes[i].Err(); err != nil {
					t.Fatalf("node %d failed before: %v", i, err)
				}
			}
			omits[bad].Store(true)
			began := time.Now()
			unlock(t, f.lock(good, "last")) // one of these entries is omitted
			for f.nodes[bad].Err() == nil && time.Since(began) < 10*time.Second {
				time.Sleep(10 * time.Millisecond)
			}
			t.Logf("leads %v: found after %v", leads, time.Since(began))
			err := f.nodes[bad].Err()
			if took := time.Since(began); took > 2*time.Second || !errors.Is(err, raftlog.ErrDiverged) || mine.Err() == nil {
				t.Errorf("after %v: %v; its lock: %v", took, err, mine.Err())
			}
			for _, text := range []string{"differs from that of the majority", "keep the log and the directory",
				"start it again with an empty directory"} {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
			got := strings.Join(logs[f.nodes[bad].config.Name].take(), "")
			if strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "differs from that of the majority") {
				t.Errorf("its log:\n%s", got)
			}
			time.Sleep(5 * time.Second)
			for i := range 3 {
				if err := f.nodes[i].Err(); i != bad && err != nil {
					t.Errorf("node %d has failed, too: %v", i, err)
				}
			}
			if err := kept.Err(); err != nil {
				t.Errorf("the lock of another instance ended: %v", err)
			}
			unlock(t, kept)
			unlock(t, f.lock(good, "mine"))
			h, err := f.nodes[good].Health(t.Context())
			if leads && err == nil {
				return // the next leader has not compared the states
			}
			name := f.nodes[bad].config.Name
			at := slices.IndexFunc(h.Differs, func(d string) bool {
				return strings.HasPrefix(d, "State: the replica of "+name+" had another state than the majority after entry ")
			})
			if err != nil || at < 0 || !strings.Contains(h.Differs[at], time.Now().UTC().Format(time.DateOnly)) ||
				!strings.Contains(h.DifferStep(h.Differs[at]), "start it again with an empty directory") ||
				!strings.Contains(h.String(), h.Differs[at]) || !strings.Contains(h.Advice+h.String(), name) {
				t.Errorf("Health: %+v, %v", h, err)
			}
		})
	}
}
