//go:build nextrules

package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestANewClientAtAnOldGroup runs clients with version 2 of the rules for three TTLs in a group
// with version 1, under load. They lose nothing. After the Raise they use what it adds.
func TestANewClientAtAnOldGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, 1, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		one, two := nodeidtest.ID(100), nodeidtest.ID(101)
		kept := w.lock(one, "kept")
		session := w.clients[one].Status().Session
		load := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				a, b := w.lock(two, "a"), w.lock(one, "b")
				a.Release(t.Context())
				b.Release(t.Context())
			}
		}
		load(3 * worldTTL)
		noted := uint64(0) // a client that has seen a Mark refused sends no Note
		for id, c := range w.clients {
			s := c.Status()
			if noted += s.NotesRefused; s.Marks != 0 || s.MarksRefused < 6 || s.Notes != 0 {
				t.Errorf("client %v: %+v", id, s.laterStatus)
			}
		}
		if noted == 0 || noted > 9 {
			t.Errorf("%d requests with a Note were refused", noted)
		}
		w.keepers[nodeidtest.ID(1)].ProposeRaise(w.term, lockfsm.RulesVersion)
		load(2 * worldTTL)
		for id, c := range w.clients {
			if s := c.Status(); s.Marks < 3 || s.Notes < 9 {
				t.Errorf("client %v after the Raise: %+v", id, s.laterStatus)
			}
		}
		if err := kept.Err(); err != nil || w.clients[one].Status().Session != session {
			t.Errorf("lost: %v", err)
		}
	})
}
