package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// A holder whose locks were taken from it while it was cut off learns how, as soon as it reaches a
// leader again: also from a leader that was elected since, and for every kind of hold.
func TestAHolderThatWasForcedWhileItWasCutOffLearnsIt(t *testing.T) {
	for name, moved := range map[string]bool{"the same leader": false, "another leader": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3, func(c *mortise.Config) { c.SessionTTL = 10 * time.Second })
				leader := f.leader()
				cut := (leader + 1) % 3
				n, other := f.nodes[cut], f.nodes[leader]
				held := map[string]*mortise.Lock{}
				for key, r := range map[string]mortise.Request{
					"plain": {}, "shared": {Mode: mortise.Shared}, "permits": {Mode: mortise.Permits(2, 3)},
					"upgradable": {Mode: mortise.Upgradable},
					"delay":      {LockDelay: time.Minute}, "grace": {JeopardyGrace: time.Minute}, "value": {Value: "v"},
					"sticky": {}, "taken": {}, "kept": {},
				} {
					asked := any(stickily{key: key})
					if r.Key = key; key != "sticky" {
						asked = r
					}
					l, err := acquire(brief(t), n, asked)
					if err != nil {
						t.Fatalf("%s: %v", key, err)
					}
					held[key] = l
				}
				several, err := n.LockAll(brief(t), "a", "b", "c")
				if err != nil {
					t.Fatal(err)
				}
				held["a"] = several
				f.isolate(cut)
				for key := range held {
					if key == "taken" || key == "kept" {
						continue
					}
					token := f.peek(leader, key).Queue[0].Token // of a sticky lock, the group knows another one
					if ended, err := other.ForceUnlock(brief(t), key, token, "the reason of "+key); !ended || err != nil {
						t.Fatalf("%s: %v, %v", key, ended, err)
					}
				}
				taken, err := other.Resume(brief(t), "taken", held["taken"].Token(), mortise.ResumeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if moved {
					f.crash(leader)
				}
				f.rejoin(cut)
				time.Sleep(5 * time.Second)
				for key, l := range held {
					var forced *mortise.ForcedError
					switch is := errors.As(l.Err(), &forced); {
					case key == "kept":
						if l.Err() != nil {
							t.Errorf("%s: %v", key, l.Err())
						}
					case !is || !errors.Is(l.Err(), mortise.ErrLost):
						t.Errorf("%s: the holder learns only %v", key, l.Err())
					case forced.Resumed != (key == "taken") || forced.By != other.config.Name ||
						!forced.Resumed && forced.Reason != "the reason of "+key:
						t.Errorf("%s: %+v", key, *forced)
					}
				}
				if !moved && taken.Err() != nil {
					t.Error(taken.Err())
				}
			})
		})
	}
}
