package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
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

// returns are the times at which a holder that was cut off reaches a leader again.
var returns = []string{"before its lease ends", "after an outage, in which no session ends",
	"after its session has ended"}

// fates are what happens to the holds of a holder while it is cut off. The late ones happen after
// its session has ended, to holds that a LockDelay keeps.
var fates = []string{"nothing", "force", "resume", "late force", "late resume"}

// learned returns what a holder must learn, as the Outcome of Hooks.Lost, and "" if its lock is
// good. A holder whose session has ended learns only that. It must not be told of a force that came
// after the end of its hold.
func learned(back, fate string, grace bool) mortise.Outcome {
	switch {
	case back != returns[0] && !grace:
		return mortise.OutcomeLease
	case back == returns[2]:
		return mortise.OutcomeExpired
	}
	return map[string]mortise.Outcome{"force": mortise.OutcomeForced, "resume": mortise.OutcomeResumed}[fate]
}

// Each hold of a holder that was cut off ends for a reason that is true.
func TestWhatAHolderLearnsThatWasCutOff(t *testing.T) {
	slow.UnderRace(t)
	const grace, delay = 1, 2
	for at, back := range returns {
		t.Run(back, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				lost, mu := map[string]mortise.Outcome{}, sync.Mutex{}
				f := startFleet(t, 3, func(c *mortise.Config) {
					name := c.Name
					c.SessionTTL = 10 * time.Second
					c.Hooks = &mortise.Hooks{Lost: func(e mortise.LockEvent) {
						mu.Lock()
						defer mu.Unlock()
						key := name + " " + e.Key
						if lost[key] != "" {
							t.Errorf("%s is lost twice: %s, then %s", key, lost[key], e.Outcome)
						}
						lost[key] = e.Outcome
					}}
				})
				leader := f.leader()
				cut := (leader + 1) % 3
				other := f.nodes[leader]
				held := map[string]*mortise.Lock{}
				for kind := range 4 {
					for _, fate := range fates {
						late := strings.HasPrefix(fate, "late")
						if late && (at != 2 || kind&delay == 0) {
							continue // there is no such hold
						}
						r := mortise.Request{Key: fmt.Sprint(fate, "/", kind)}
						if kind&grace != 0 {
							r.JeopardyGrace = time.Hour
						}
						if kind&delay != 0 {
							r.LockDelay = time.Hour
						}
						held[r.Key] = f.acquire(cut, r)
					}
				}
				happens := func(late bool) {
					t.Helper()
					for key, l := range held {
						var err error
						switch fate, _, _ := strings.Cut(key, "/"); {
						case strings.HasPrefix(fate, "late") != late:
						case strings.HasSuffix(fate, "force"):
							_, err = other.ForceUnlock(brief(t), key, l.Token(), "why")
						case strings.HasSuffix(fate, "resume"):
							_, err = other.Resume(brief(t), key, l.Token(), mortise.ResumeOptions{})
						}
						if err != nil {
							t.Fatalf("%s: %v", key, err)
						}
					}
				}
				f.isolate(cut)
				happens(false)
				switch time.Sleep(time.Second); at {
				case 1:
					f.noMajority()
					time.Sleep(20 * time.Second)
				case 2:
					time.Sleep(20 * time.Second)
					happens(true)
				}
				f.rejoinAll()
				time.Sleep(5 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				for key, l := range held {
					fate, kind, _ := strings.Cut(key, "/")
					want := learned(back, fate, kind == "1" || kind == "3")
					var forced *mortise.ForcedError
					told, err, why := errors.As(l.Err(), &forced), l.Err(), lost[f.nodes[cut].config.Name+" "+key]
					if why != want || told != (want == mortise.OutcomeForced || want == mortise.OutcomeResumed) ||
						told && forced.Resumed != (want == mortise.OutcomeResumed) || errors.Is(err, mortise.ErrLost) != (want != "") ||
						want == "" && err != nil {
						t.Errorf("%s: it learns %q (%v), want %q", key, why, err, want)
					}
				}
			})
		})
	}
}
