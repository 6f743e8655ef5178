//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// record writes what each function prints, as a table and as JSON, below its name.
func record(all map[string]func(c *call) error) []byte {
	var text bytes.Buffer
	for _, what := range slices.Sorted(maps.Keys(all)) {
		var tables string
		for _, json := range []bool{false, true} {
			var out, errs bytes.Buffer
			c := &call{out: &out, errs: &errs, json: json, words: []string{"w"}}
			err := all[what](c)
			said := out.String() + errs.String()
			if err != nil {
				said += fmt.Sprintf("error: %v\n", err)
			}
			if json && (said == tables || said == "") {
				continue
			}
			tables = said
			fmt.Fprintf(&text, "%s\n", strings.TrimSpace(what+map[bool]string{true: ", as JSON"}[json]))
			for line := range strings.Lines(said) {
				fmt.Fprintf(&text, "  %s\n", strings.TrimSpace(line))
			}
		}
	}
	return text.Bytes()
}

// standings are holders and waiters that differ in one thing that decides about their texts.
func standings() map[string]mortise.Standing {
	since := time.Now().Add(-100 * time.Second)
	held := mortise.Standing{Part: mortise.Part{Key: "k"}, Left: 6 * time.Second, WaitsFor: -1, Hold: mortise.Hold{
		Holder: "Nb", Session: "7", Token: 41, Since: since, Value: "v"}}
	return map[string]mortise.Standing{
		"held":    held,
		"expired": with(held, func(s *mortise.Standing) { s.Expired = true }),
		"kept":    with(held, func(s *mortise.Standing) { s.Kept = true }),
		"an election": with(held, func(s *mortise.Standing) {
			s.Labels = shown.Purpose(shown.Election)
		}),
		"of unknown time": with(held, func(s *mortise.Standing) { s.Left, s.Since = 0, time.Time{} }),
		"a tree and more": with(held, func(s *mortise.Standing) {
			s.Tree, s.Mode, s.Also = true, mortise.Shared, []mortise.Part{{Key: "l"}, {Mode: mortise.Shared},
				{Key: "m", Tree: true}}
		}),
		"waits":   with(held, func(s *mortise.Standing) { s.Token, s.Since, s.WaitsFor = 0, time.Time{}, 3 }),
		"waits 0": with(held, func(s *mortise.Standing) { s.Token, s.Since, s.WaitsFor, s.Unsearched = 0, since, 0, true }),
		"elsewhere": with(held, func(s *mortise.Standing) {
			s.Token, s.Since, s.Also = 0, time.Time{}, []mortise.Part{{Key: "l"}}
		}),
	}
}

// holders are what instances say about the holder Nb with the session 7.
func holders() map[string]facts {
	sessions := func(ids ...string) func(*guest.Report) {
		return func(r *guest.Report) { r.Status.Sessions = ids }
	}
	with := func(of guest.Report) facts {
		return apart(facts{reports: []guest.Report{instance("a", sessions("1")), of}})
	}
	return map[string]facts{
		"alive":        with(instance("b", sessions("5", "7"))),
		"started anew": with(instance("b", sessions("9"))),
		"just started": with(instance("b", nil)),
		"gone":         with(missing("b", guest.Refused)),
		"silent":       with(missing("b", guest.Silent)),
		"lost": with(instance("b", func(r *guest.Report) {
			r.Status.Sessions, r.Status.Lease = []string{"7"}, mortise.LeaseLost
		})),
		"another": with(missing("c", guest.Refused)),
	}
}

func TestTextsAreAsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for the time
		all := map[string]func(c *call) error{}
		now := time.Now()
		for whose, f := range holders() {
			for what, s := range standings() {
				k := mortise.KeyInfo{Key: "a key", Held: 1, Waiting: 2, Queue: []mortise.Standing{s, {Hold: mortise.Hold{
					Holder: "Na", Session: "1"}}}}
				if s.Token == 0 {
					k.Held = 0
				}
				all["key "+what+", holder "+whose] = func(c *call) error {
					d := &diagnosis{Well: true, Problem: "all is well", Steps: []string{"do nothing"}}
					d.stuck(f, []hot{hotOf(k)})
					if whose == "alive" {
						c.printf("%s\n%s\n", strings.Join(keyRow(k, now), "|"), strings.Join(standingRow(3, s, now), "|"))
					}
					if !d.Well {
						c.printf("%v: %s; why: %s; steps: %q\n", d.Well, d.Problem, d.Why, d.Steps)
					}
					return c.tellKeys([]hot{hotOf(k)}, f)
				}
			}
		}
		f := holders()["alive"]
		long := func(change func(k *hot)) func(c *call) error {
			return func(c *call) error {
				k := hot{HeldFor: longHeld, KeyInfo: mortise.KeyInfo{Key: "k", Held: 1, Waiting: 1,
					Queue: []mortise.Standing{standings()["held"]}}}
				change(&k)
				d := &diagnosis{Well: true, Problem: "all is well", Steps: []string{"do nothing"}}
				d.stuck(f, []hot{k, k})
				return c.tellCheckup(&checkup{diagnosis: d, facts: f, keys: []hot{k}})
			}
		}
		all["held just long"] = long(func(*hot) {})
		all["held not yet long"] = long(func(k *hot) { k.HeldFor-- })
		all["held long, nothing waits"] = long(func(k *hot) { k.Waiting = 0 })
		all["held by several"] = long(func(k *hot) { k.Held, k.Queue = 3, append(k.Queue, k.Queue[0]) })
		all["free"] = long(func(k *hot) { k.Held, k.Waiting, k.Queue = 0, 0, nil })
		maps.Copy(all, ofMembers(now))
		maps.Copy(all, ofEvents(now))
		sameAs(t, "testdata/texts.txt", record(all))
	})
}

func ofMembers(now time.Time) map[string]func(c *call) error {
	list := []mortise.Member{{Name: "n", Instance: "i", Address: "a", Zone: "z", Version: "v", Tier: mortise.TierRoot,
		Session: "s", Since: now.Add(-time.Hour), Votes: true}, {Name: "m", Session: "r", For: "f"}}
	reports := append(apart(facts{reports: []guest.Report{instance("a", func(r *guest.Report) {
		r.Answer.Failed, r.Answer.Durable, r.Status.Leading = "it burns", true, true
	}), missing("b", guest.Silent), missing("c", guest.Refused),
		instance("d", func(r *guest.Report) { r.Status.Voters = []mortise.Member{{Name: "x"}, {Address: "c:1"}} }),
		instance("", func(r *guest.Report) { r.Addr = "e:1"; r.Status.Voters = voting("e") })}}).reports,
		guest.Report{Addr: "e:1", From: "f", Outcome: guest.Foreign, Err: errors.New("foreign")})
	var keys []hot
	for i, key := range []string{"p", "q", "r"} {
		keys = append(keys, hot{HeldFor: time.Duration(i) * time.Second, Changes: i, KeyInfo: mortise.KeyInfo{Key: key,
			Held: i, Waiting: 2 * i, Queue: []mortise.Standing{standings()["held"]}}})
	}
	all := map[string]func(c *call) error{
		"members": func(c *call) error { return c.tellMembers(memberList{members: list, leader: "i", total: 9}) },
		"members, and more": func(c *call) error {
			return c.tellMembers(memberList{members: list, total: 9, next: "77"})
		},
		"members without a leader": func(c *call) error { return c.tellLastMembers(reports, errors.New("no leader")) },
		"checkup": func(c *call) error {
			d := &diagnosis{Problem: "a problem", Why: []string{"one", "two"}, Steps: []string{"first", "second"}}
			return c.tellCheckup(&checkup{diagnosis: d, facts: facts{reports: reports}})
		},
		"checkup of nothing": func(c *call) error { return c.tellCheckup(&checkup{diagnosis: &diagnosis{Well: true}}) },
		"top":                func(c *call) error { return c.showTop(topOptions{rows: 2, by: "held"}, "", keys, false) },
		"top of a prefix":    func(c *call) error { return c.showTop(topOptions{rows: 2, by: "held"}, "pre", keys, true) },
		"top of few":         func(c *call) error { return c.showTop(topOptions{rows: 2, by: "held"}, "", keys[:1], true) },
		"ping":               func(c *call) error { return c.showPings(pinged{"n", 3, 0.001, 0.002, 0.0031}) },
		"ping, no leader":    func(c *call) error { return c.showPings(pinged{Locks: 3}) },
		"secret":             func(c *call) error { return c.tell("a secret", "\none\ntwo\n") },
		"root secret":        func(c *call) error { return c.tell("a secret", "") },
		"orders": func(c *call) error {
			for _, by := range slices.Sorted(maps.Keys(topOrders())) {
				less := topOrders()[by]
				for _, o := range []hot{
					{HeldFor: 2, Changes: 2, KeyInfo: mortise.KeyInfo{Key: "q", Waiting: 2}},
					{HeldFor: 2, Changes: 2, KeyInfo: mortise.KeyInfo{Key: "p", Waiting: 2}},
					{HeldFor: 1, Changes: 2, KeyInfo: mortise.KeyInfo{Key: "q", Waiting: 2}},
					{HeldFor: 2, Changes: 1, KeyInfo: mortise.KeyInfo{Key: "q", Waiting: 2}},
					{HeldFor: 2, Changes: 2, KeyInfo: mortise.KeyInfo{Key: "q", Waiting: 1}},
					{HeldFor: 3, Changes: 1, KeyInfo: mortise.KeyInfo{Key: "a", Waiting: 1}},
				} {
					c.printf("%s %d\n", by, less(o, hot{HeldFor: 2, Changes: 2, KeyInfo: mortise.KeyInfo{Key: "q",
						Waiting: 2}}))
				}
			}
			return nil
		},
		"outcomes of exits": func(c *call) error {
			for _, err := range []error{nil, &exitError{7, "own"}, &exitError{8, ""}, mortise.ErrNotAllowed, mortise.ErrNotReady,
				&mortise.HeldError{Key: "k", Hold: mortise.Hold{Holder: "n", Token: 3}}, mortise.ErrQueueFull,
				context.DeadlineExceeded,
				mortise.ErrLost, mortise.ErrBadKey, mortise.ErrBadRequest, errors.New("other"),
				fmt.Errorf("%w: %w", context.DeadlineExceeded, &mortise.HeldError{Key: "k"})} {
				for _, command := range []string{"", "cmd"} {
					c.printf("%d\n", report(c.errs, command, err))
				}
			}
			return nil
		},
		"refusals": func(c *call) error {
			for _, err := range refused() {
				code, p := problemOf(err)
				c.printf("%d %s %v %s\n", code, p.Kind, p.Held != nil, p.Error)
			}
			return nil
		},
		"founded by": func(c *call) error {
			for _, a := range []*query.HereAnswer{{Replicas: 3}, {Founders: []string{"a", "b"}, Replicas: 4}} {
				c.printf("%s\n", foundedBy(guest.Report{Answer: a}))
			}
			return nil
		},
		"exit codes": func(c *call) error {
			for _, code := range []int{0, 1, exitSignal, exitSignal + 1, exitSignal + 9} {
				c.printf("%s\n", endedWith(code))
			}
			return nil
		},
	}
	return all
}

// refused has each error of the HTTP API, alone and with others of which one decides.
func refused() []error {
	all := []error{&mortise.HeldError{Key: "k", Hold: mortise.Hold{Holder: "n", Token: 3}}, errBadSecret,
		errNoPrograms, errMemberSecret, mortise.ErrNotAllowed, errNotForPrograms, errNoPath, errNoMethod,
		mortise.ErrBadRequest, mortise.ErrBadKey, errNoLease,
		errNoLock, errGivenUp, mortise.ErrNotHeld, mortise.ErrConflict, mortise.ErrKept, mortise.ErrLost,
		mortise.ErrInJeopardy, mortise.ErrNotReady, mortise.ErrLeaving, mortise.ErrClosed, mortise.ErrOverloaded,
		mortise.ErrNoRoom, errTooMuch, errManyRequests, errManyBytes, errManySecrets, mortise.ErrQueueFull, behind(true),
		behind(false), context.DeadlineExceeded, context.Canceled, errors.New("other")}
	for i := range len(all) - 1 {
		all = append(all, fmt.Errorf("%w, and %w", all[i+1], all[i]))
	}
	return all
}

// behind is an error that knows whether there is a holder.
type behind bool

func (b behind) Error() string     { return fmt.Sprint("behind a holder: ", bool(b)) }
func (b behind) HolderKnown() bool { return bool(b) }

func ofEvents(now time.Time) map[string]func(c *call) error {
	e := mortise.Event{Position: 5, Kind: mortise.EventFreed, At: now, Part: mortise.Part{Key: "k", Mode: mortise.Shared,
		Tree: true}, Hold: mortise.Hold{Holder: "n", Session: "s", Token: 41, Value: "v"}, Cause: mortise.OutcomeForced,
		By: "b", Reason: "r", Data: []byte("d"), Revision: 9}
	all := map[string]func(c *call) error{}
	for what, change := range map[string]func(*mortise.Event){
		"whole": func(*mortise.Event) {}, "current": func(e *mortise.Event) { e.Kind = mortise.EventCurrent },
		"reset": func(e *mortise.Event) { *e = mortise.Event{Kind: mortise.EventReset, Position: 5} },
		"lead": func(e *mortise.Event) {
			*e = mortise.Event{Kind: mortise.EventKind("lead"), At: now, By: "b", Reason: "from n1 to n2: r"}
		},
		"data":      func(e *mortise.Event) { e.Kind = mortise.EventData },
		"no time":   func(e *mortise.Event) { e.At = time.Time{} },
		"no holder": func(e *mortise.Event) { e.Holder = "" }, "no token": func(e *mortise.Event) { e.Token = 0 },
		"exclusive":      func(e *mortise.Event) { e.Mode, e.Tree = mortise.Exclusive, false },
		"exclusive tree": func(e *mortise.Event) { e.Mode = mortise.Exclusive },
		"shared":         func(e *mortise.Event) { e.Tree = false }, "no cause": func(e *mortise.Event) { e.Cause = "" },
		"without a culprit": func(e *mortise.Event) { e.By = "" }, "no reason": func(e *mortise.Event) { e.Reason = "" },
		"neither": func(e *mortise.Event) { e.By, e.Reason = "", "" },
	} {
		changed := with(e, change)
		all["event, "+what] = func(c *call) error { return c.tellEvent(changed) }
	}
	return all
}

// TestHelpIsAsRecorded compares the whole help of each command. The flags that describe the cluster
// stand only below the first command of those that have the same ones.
func TestHelpIsAsRecorded(t *testing.T) {
	var text bytes.Buffer
	told := map[string]bool{}
	for _, args := range append([]string{""}, strings.Fields("run ls get top watch audit data unlock members sessions "+
		"lead status doctor ping recover secret agent completion version")...) {
		var out bytes.Buffer
		code := Main(t.Context(), strings.Fields("help "+args), &out, &out)
		own, shared, _ := strings.Cut(out.String(), "flags that describe the cluster")
		if fmt.Fprintf(&text, "--- help %s: %d\n%s", args, code, own); !told[shared] {
			fmt.Fprint(&text, shared)
		}
		told[shared] = true
	}
	for _, args := range []string{"", "-h", "--help", "doctr", "ls -jion x", "ls -zzz"} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), strings.Fields(args), &out, &errs)
		fmt.Fprintf(&text, "--- %q: %d, %d lines\n%s", args, code, strings.Count(out.String(), "\n"), &errs)
	}
	sameAs(t, "testdata/help.txt", text.Bytes())
}
