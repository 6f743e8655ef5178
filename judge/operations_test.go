package judge

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
	"github.com/mortise-lock/mortise/lockfsm"
)

var update = flag.Bool("update", false, "write testdata/operations.txt anew")

// rare returns histories by hand of what random histories seldom or never have.
func rare() map[string][]history.Event {
	call := func(stream int, op uint64, at int64, key string, keys ...string) history.Event {
		return history.Event{Kind: history.Call, Stream: stream, Op: op, At: at, Key: key, Keys: keys}
	}
	of := func(kind history.Kind, stream int, op uint64, at int64) history.Event {
		return history.Event{Kind: kind, Stream: stream, Op: op, At: at}
	}
	result := func(stream int, op uint64, at int64, out history.Outcome, token lockfsm.Token) history.Event {
		e := of(history.Return, stream, op, at)
		e.Outcome, e.Token = out, token
		return e
	}
	voted := func(kind history.Kind, group history.Group, token lockfsm.Token, at int64, key string,
		keys ...string) history.Event {
		return history.Event{Kind: kind, Stream: 9, At: at, Group: group, Token: token, Key: key, Keys: keys, Session: 4}
	}
	with := func(e history.Event, change func(*history.Event)) history.Event { change(&e); return e }
	how := func(how history.How) func(*history.Event) { return func(e *history.Event) { e.How = how } }
	modes := func(modes ...lockfsm.Mode) func(*history.Event) {
		return func(e *history.Event) { e.Modes = history.Modes(modes) }
	}
	failed := func(e *history.Event) { e.Err = "no answer" }
	until := func(at int64) func(*history.Event) { return func(e *history.Event) { e.Until = at } }
	stay := func(last lockfsm.Token) func(*history.Event) { return func(e *history.Event) { e.Last = last } }
	return map[string][]history.Event{
		"several unlocks, losses and voters": {
			call(1, 1, 100, "a"), result(1, 1, 200, history.Granted, 10),
			voted(history.Grant, 1, 10, 190, "a"), voted(history.Grant, 1, 10, 150, "a"),
			of(history.Unlock, 1, 1, 300), of(history.Unlock, 1, 1, 320), of(history.Downgrade, 1, 1, 260),
			of(history.Downgrade, 1, 1, 250), with(of(history.Unlocked, 1, 1, 310), failed), of(history.Unlocked, 1, 1, 350),
			of(history.Unlocked, 1, 1, 340), voted(history.Shared, 1, 10, 280, "a"), voted(history.Shared, 1, 10, 270, "a"),
			with(voted(history.End, 1, 10, 330, "a"), how(history.ByRelease)),
			with(voted(history.End, 1, 10, 325, "a"), how(history.ByRelease)),
			call(2, 1, 900, "a"), result(2, 1, 910, history.Held, 10), // so that the end is not narrowed
			call(1, 2, 400, "b"), result(1, 2, 500, history.Granted, 11), of(history.Unlock, 1, 2, 600),
			with(of(history.Unlocked, 1, 2, 610), failed), of(history.Unlocked, 1, 2, 630), of(history.Unlocked, 1, 2, 620),
			call(2, 2, 920, "b"), result(2, 2, 930, history.Held, 11),
		},
		"ties": {
			call(1, 1, 100, "a"), result(1, 1, 200, history.Failed, 0), voted(history.Grant, 1, 18, 500, "a"),
			voted(history.Grant, 1, 12, 500, "a"), voted(history.Grant, 1, 17, 500, "a"), voted(history.Grant, 1, 15, 500, "a"),
			voted(history.Grant, 1, 16, 500, "a"), voted(history.Grant, 1, 14, 500, "a"), voted(history.Grant, 1, 13, 500, "a"),
			call(1, 2, 600, "b"), result(1, 2, 700, history.Granted, 20), of(history.Unlock, 1, 2, 970),
			of(history.Downgrade, 1, 2, 970), with(voted(history.End, 1, 20, 970, "b"), how(history.ByRelease)),
			call(1, 3, 600, "c"), result(1, 3, 700, history.Granted, 21), call(1, 4, 650, "c"),
			result(1, 4, 750, history.Granted, 21), call(1, 5, 660, "c"), result(1, 5, 760, history.Granted, 22),
			call(1, 6, 670, "c"), result(1, 6, 770, history.Granted, 22),
		},
		"a loss that was noted late": {
			call(1, 1, 100, "a"), result(1, 1, 200, history.Granted, 10), with(of(history.Lost, 1, 1, 300), until(280)),
			call(1, 2, 400, "b"), result(1, 2, 500, history.Granted, 11), with(of(history.Lost, 1, 2, 600), until(650)),
			call(1, 3, 700, "c"), result(1, 3, 800, history.Granted, 12), of(history.Lost, 1, 3, 900),
			with(voted(history.End, 1, 10, 900, "a"), how(history.ByExpire)),
			with(voted(history.End, 1, 11, 910, "b"), how(history.ByForce)),
			with(voted(history.End, 1, 12, 920, "c"), how(history.ByClose)),
		},
		"the grants of three groups": {
			call(1, 1, 100, "a"), result(1, 1, 200, history.Granted, 10), voted(history.Grant, 1, 10, 150, "a"),
			voted(history.Grant, 1, 12, 170, "x"), voted(history.Grant, 2, 20, 550, "a"), voted(history.Grant, 2, 21, 500, "x"),
			voted(history.Grant, 3, 30, 900, "a"), with(voted(history.End, 2, 21, 600, "x"), how(history.ByRelease)),
			with(voted(history.End, 4, 40, 50, "y"), how(history.ByRelease)),
			with(voted(history.End, 5, 15, 50, "y"), how(history.ByRelease)), voted(history.Shared, 1, 12, 300, "x"),
			call(3, 1, 1000, "x"), result(3, 1, 1010, history.Held, 21), call(3, 2, 1020, "x"),
			result(3, 2, 1030, history.Held, 12), call(3, 3, 1040, "a"), result(3, 3, 1050, history.Held, 10),
		},
		"calls that failed, and grants that were not told": {
			call(1, 1, 300, "a", "b"), result(1, 1, 400, history.Failed, 0), call(2, 1, 100, "a"),
			call(2, 2, 80, "b"), result(2, 2, 120, history.Held, 0), call(2, 3, 600, "c"),
			result(2, 3, 700, history.Granted, 11),
			voted(history.Grant, 1, 10, 450, "a", "b"), with(voted(history.End, 1, 10, 500, "a", "b"), how(history.ByCancel)),
			voted(history.Grant, 1, 11, 690, "c"), voted(history.Grant, 1, 12, 750, "a"),
			with(voted(history.Grant, 1, 13, 50, "b"), func(e *history.Event) { e.Session = 5 }),
			with(voted(history.Grant, 1, 14, 780, "a"), func(e *history.Event) { e.Session = 5 }),
		},
		"tries that were told of a holder": {
			call(1, 1, 100, "a", "b"), result(1, 1, 200, history.Granted, 10),
			voted(history.Grant, 1, 10, 150, "a", "b", "c"), voted(history.Grant, 1, 11, 160, "e"),
			call(2, 1, 210, "b", "c"), result(2, 1, 220, history.Held, 10), call(2, 2, 230, "e", "f"),
			result(2, 2, 240, history.Held, 11), call(2, 3, 250, "g"), result(2, 3, 260, history.Held, 10),
			call(2, 4, 270, "h"), result(2, 4, 280, history.Held, 77),
		},
		"modes of several keys, and what they become": {
			with(call(1, 1, 100, "a", "b"), modes(lockfsm.ModeX, lockfsm.ModeS)), result(1, 1, 200, history.Granted, 10),
			with(voted(history.Grant, 1, 10, 150, "a", "b"), modes(lockfsm.ModeX, lockfsm.ModeS)),
			of(history.Downgrade, 1, 1, 300),
			with(voted(history.Shared, 1, 10, 310, "a", "b"), modes(lockfsm.ModeS, lockfsm.ModeS)),
			call(1, 2, 400, "c", "d"), result(1, 2, 500, history.Granted, 11), of(history.Downgrade, 1, 2, 600),
			call(1, 3, 700, "e"), result(1, 3, 800, history.Granted, 12), of(history.Downgrade, 1, 3, 900),
			with(voted(history.End, 1, 12, 850, "e"), how(history.ByForce)),
			call(1, 4, 950, "f"), result(1, 4, 960, history.Granted, 13), of(history.Downgrade, 1, 4, 970),
			with(voted(history.End, 1, 13, 990, "f"), how(history.ByExpire)),
			call(1, 5, 1000, "g"), result(1, 5, 1010, history.Granted, 14), of(history.Downgrade, 1, 5, 1020),
			voted(history.Shared, 1, 14, 1050, "g"), with(voted(history.End, 1, 14, 1015, "g"), how(history.ByForce)),
		},
		"a resumed hold, and an upgrade": {
			voted(history.Grant, 1, 10, 250, "a", "b"),
			with(call(1, 1, 200, "a"), func(e *history.Event) { e.Resumes = 9 }), result(1, 1, 300, history.Granted, 10),
			with(call(1, 2, 350, "u"), modes(lockfsm.ModeU)), result(1, 2, 360, history.Granted, 20),
			with(voted(history.Grant, 1, 20, 355, "u"), modes(lockfsm.ModeU)),
			with(call(1, 3, 400, "u"), func(e *history.Event) { e.Upgrades = 20 }), result(1, 3, 450, history.Granted, 21),
			with(voted(history.Grant, 1, 21, 440, "u"), func(e *history.Event) { e.Upgrades = 20 }),
			of(history.Downgrade, 1, 3, 470), of(history.Unlocked, 1, 3, 480), of(history.Unlocked, 1, 2, 490),
			with(voted(history.Grant, 1, 22, 600, "u"), func(e *history.Event) { e.Upgrades = 20 }),
		},
		"stays of two keys": {
			with(voted(history.Grant, 1, 10, 100, "a"), stay(14)), with(voted(history.Grant, 1, 10, 90, "a"), stay(13)),
			with(voted(history.Grant, 1, 20, 110, "b"), func(e *history.Event) { e.Last, e.Permits = 24, 1 }),
			call(1, 2, 120, "a"), result(1, 2, 160, history.Granted, 12), call(1, 1, 50, "a"),
			result(1, 1, 110, history.Granted, 11), of(history.Unlock, 1, 1, 150), of(history.Unlocked, 1, 1, 155),
			of(history.Unlock, 1, 2, 300), call(1, 3, 60, "b"), result(1, 3, 130, history.Granted, 21), call(1, 4, 70, "b"),
			result(1, 4, 140, history.Granted, 22), of(history.Unlock, 1, 3, 200), of(history.Unlocked, 1, 3, 210),
			call(2, 1, 170, "a"), result(2, 1, 180, history.Held, 12), call(2, 2, 190, "a"), result(2, 2, 290, history.Held, 13),
			call(2, 3, 195, "a"), result(2, 3, 285, history.Held, 13), call(2, 4, 310, "a"), result(2, 4, 320, history.Held, 10),
			call(2, 5, 330, "z"), result(2, 5, 340, history.Held, 12), call(1, 5, 40, "a"),
			result(1, 5, 500, history.Failed, 0), with(voted(history.End, 1, 10, 400, "a"), how(history.ByRelease)),
			with(voted(history.End, 1, 20, 250, "b"), how(history.ByForce)), call(2, 6, 260, "b"),
			result(2, 6, 270, history.Held, 22), with(voted(history.Grant, 1, 30, 700, "c"), stay(30)),
			call(1, 6, 650, "c"), result(1, 6, 720, history.Granted, 30), call(2, 7, 730, "c"),
			result(2, 7, 740, history.Held, 30),
		},
	}
}

// TestOperationsAreAsRecorded compares all operations that are made of histories, and which tokens
// their grants follow, with testdata/operations.txt. After a change write the file anew (go test .
// -run OperationsAre -update) and read its diff.
func TestOperationsAreAsRecorded(t *testing.T) {
	all := rare()
	for name, o := range map[string]historytest.Options{
		"random: mutexes": {Seed: 2, Calls: 24, Callers: 4, Keys: 2, Try: 0.2, Cancel: 0.2, Crash: 0.05, Lose: 0.1},
		"random: all kinds": {Seed: 3, Calls: 24, Callers: 4, Keys: 2, Try: 0.2, Cancel: 0.2, Crash: 0.05, Lose: 0.1,
			Share: 0.4, Permits: 0.2, Several: 0.3, Downgrade: 0.4},
		"random: stays": {Seed: 5, Calls: 40, Callers: 3, Keys: 2, Try: 0.3, Cancel: 0.1, Crash: 0.05, Lose: 0.1,
			Sticky: 0.8},
	} {
		all[name] = historytest.Make(o)
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, uncertainty := range []history.Options{{}, {Uncertainty: 7}} {
			fmt.Fprintf(&text, "%s, uncertainty %d\n", name, uncertainty.Uncertainty)
			keys, err := operations(all[name], Options{Options: uncertainty})
			if err != nil {
				fmt.Fprintf(&text, " %v\n", err)
			}
			if len(all[name]) > 100 && uncertainty.Uncertainty != 0 {
				continue // the same with other times
			}
			for _, k := range keys {
				fmt.Fprintf(&text, " %v\n", k.part)
				for _, o := range k.operations {
					in := o.Input.(operation)
					fmt.Fprintf(&text, "  %s..%s line %d: %v", moment(o.Call), moment(o.Return), o.ClientId, in)
					if in.share != (share{}) {
						fmt.Fprintf(&text, ", share %d of %s", in.share.permits, moment(in.share.of))
					}
					if in.hold != 0 || in.after != 0 {
						fmt.Fprintf(&text, ", hold %d, after %d", in.hold, in.after)
					}
					fmt.Fprintln(&text)
				}
			}
		}
	}
	const file = "testdata/operations.txt"
	if *update {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := bytes.Split(want, []byte("\n")), bytes.Split(text.Bytes(), []byte("\n"))
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !bytes.Equal(a[i], b[i]) {
			t.Fatalf("%s has %d lines, and now %d; they differ from line %d on: see it with -update and git diff", file,
				len(a), len(b), i+1)
		}
	}
}

// moment writes a time, or a number of permits, that may be unknown or without limit.
func moment(at int64) string {
	if at > math.MaxInt64/2 {
		return fmt.Sprintf("max-%d", math.MaxInt64-at)
	}
	return fmt.Sprint(at)
}

// What cannot be a history, and what was seen before it can have happened, is an error.
func TestWhatIsNoHistory(t *testing.T) {
	granted := func(token, last lockfsm.Token, at int64) history.Event {
		return history.Event{Kind: history.Grant, At: at, Group: 1, Key: "k", Token: token, Last: last}
	}
	orphan := func(kind history.Kind) []history.Event { return []history.Event{{Kind: kind, Node: "n"}} }
	unknown := func(kind string) string {
		return ErrUnknown.Error() + ": n: a " + kind + " of a call that never began"
	}
	for want, events := range map[string][]history.Event{
		ErrUnknown.Error() + ": n dropped 3 events": {{Kind: history.Dropped, Node: "n", Count: 3}},
		unknown("return"):    orphan(history.Return),
		unknown("downgrade"): orphan(history.Downgrade),
		unknown("unlock"):    orphan(history.Unlock),
		unknown("unlocked"):  orphan(history.Unlocked),
		unknown("lost"):      orphan(history.Lost),
		"porcupine: token 12 is granted, and stay 10 has reserved it": {granted(10, 14, 1), granted(12, 0, 2)},
		"porcupine: token 14 is granted, and stay 10 has reserved it": {granted(10, 14, 1), granted(14, 0, 2)},
		`porcupine: "k": grant 10 to call 1 of stream 1 was seen 50 ns before it can have happened`: {
			{Kind: history.Call, Stream: 1, Op: 1, At: 100, Key: "k"},
			{Kind: history.Return, Stream: 1, Op: 1, At: 120, Outcome: history.Granted, Token: 10}, granted(10, 0, 50),
			granted(11, 0, 1)},
	} {
		if keys, err := operations(events, Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, %v, want %s", keys, err, want)
		} else if errors.Is(err, ErrUnknown) == strings.HasPrefix(want, "porcupine") {
			t.Errorf("%v", err)
		}
	}
}

// TestWhatAViolationSays compares the whole errors of Porcupine for orders of different lengths.
func TestWhatAViolationSays(t *testing.T) {
	at := func(kind kind, token, after lockfsm.Token, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: operation{kind: kind, token: token, after: after, share: share{1, 1},
			by: "by x"}, Call: from, Return: to}
	}
	for want, operations := range map[string][]porcupine.Operation{
		"0 of its 1 operations fit into an order; after it end 1 by x does not fit, between 1 and 2": {at(end, 1, 0, 1, 2)},
		"1 of its 2 operations fit into an order, the last is grant 1 by x; after it grant 2 by x does not fit, " +
			"between 3 and 4": {at(grant, 1, 0, 1, 2), at(grant, 2, 1, 3, 4)},
		"2 of its 6 operations fit into an order, the last is seen 1 by x; after it end 3 by x does not fit, between 5 " +
			"and 6; after it end 4 by x does not fit, between 5 and 6; after it end 5 by x does not fit, between 5 and 6": {
			at(grant, 1, 0, 1, 2), at(seen, 1, 0, 3, 4), at(end, 3, 0, 5, 6), at(end, 4, 0, 5, 6), at(end, 5, 0, 5, 6),
			at(end, 6, 0, 5, 6)},
		"3 of its 4 operations fit into an order, the last is seen 1 by x; after it seen 2 by x does not fit, between 5 " +
			"and 6": {at(grant, 1, 0, 1, 2), at(seen, 1, 0, 3, 4), at(seen, 1, 0, 3, 4), at(seen, 2, 0, 5, 6)},
	} {
		k := &key{part: part{key: "k"}, operations: operations}
		result, info := porcupine.CheckOperationsVerbose(fencedLock([]*key{k}), operations, time.Minute)
		if text := explain(k, info); result != porcupine.Illegal || text != want {
			t.Errorf("%v: %s\nwant %s", result, text, want)
		}
	}
}

// TestStepsOfTheModel compares the state after each kind of operation, and which grants fit.
func TestStepsOfTheModel(t *testing.T) {
	writer, up, three := share{1, 1}, upgradable(), share{2, 3}
	model := fencedLock(nil)
	owners := func(all ...owner) state { return state{owners: all, highest: 7} }
	for _, c := range []struct {
		was  state
		do   operation
		fits bool
		is   state
	}{
		{state{}, operation{kind: grant, token: 7, share: writer}, true, owners(owner{7, writer})},
		{owners(), operation{kind: grant, token: 9, after: 7, share: three}, true, state{[]owner{{9, three}}, 9}},
		{owners(), operation{kind: grant, token: 9, after: 6, share: writer}, false, owners()},
		{owners(), operation{kind: grant, token: 9, after: 7, share: share{5, 3}}, true, state{[]owner{{9, share{5, 3}}}, 9}},
		{owners(owner{7, writer}), operation{kind: grant, token: 9, after: 7, share: writer}, false, owners()},
		{owners(owner{7, writer}), operation{kind: grant, token: 9, after: 7, share: reader}, false, owners()},
		{owners(owner{7, reader}), operation{kind: grant, token: 9, after: 7, share: writer}, false, owners()},
		{owners(owner{7, reader}), operation{kind: grant, token: 9, after: 7, share: reader}, true,
			state{[]owner{{7, reader}, {9, reader}}, 9}},
		{owners(owner{7, three}), operation{kind: grant, token: 9, after: 7, share: three}, false, owners()},
		{owners(owner{7, three}), operation{kind: grant, token: 9, after: 7, share: share{1, 3}}, true,
			state{[]owner{{7, three}, {9, share{1, 3}}}, 9}},
		{owners(owner{7, three}), operation{kind: grant, token: 9, after: 7, share: share{1, 2}}, false, owners()},
		{owners(owner{7, up}), operation{kind: grant, token: 9, after: 7, share: writer, hold: 7}, true,
			state{[]owner{{7, up}, {9, writer}}, 9}},
		{owners(owner{7, up}), operation{kind: grant, token: 9, after: 7, share: writer, hold: 6}, false, owners()},
		{owners(owner{7, reader}), operation{kind: grant, token: 9, after: 7, share: writer, hold: 7}, false, owners()},
		{owners(owner{6, reader}, owner{7, up}), operation{kind: grant, token: 9, after: 7, share: writer, hold: 7}, false,
			owners()},
		{owners(), operation{kind: grant, token: 9, after: 7, share: writer, hold: 7}, false, owners()},
		{owners(owner{6, reader}, owner{7, reader}), operation{kind: end, token: 6}, true, owners(owner{7, reader})},
		{owners(owner{6, reader}, owner{7, writer}), operation{kind: lower, token: 7, share: three}, true,
			owners(owner{6, reader}, owner{7, three})},
		{owners(owner{6, reader}), operation{kind: seen, token: 6}, true, owners(owner{6, reader})},
		{owners(owner{6, reader}), operation{kind: end, token: 7}, false, owners()},
		{owners(owner{6, reader}), operation{kind: lower, token: 7}, false, owners()},
		{owners(owner{6, reader}), operation{kind: seen, token: 7}, false, owners()},
	} {
		before := slices.Clone(c.was.owners)
		fits, is := model.Step(c.was, c.do, nil)
		if fits != c.fits || fits && (!model.Equal(is, c.is) || model.Hash(is) != model.Hash(c.is)) ||
			!slices.Equal(before, c.was.owners) {
			t.Errorf("%+v, %+v: %v, %+v", c.was, c.do, fits, is)
		}
	}
	a, b := owners(owner{6, reader}, owner{7, writer}), owners(owner{6, reader})
	if model.Equal(a, b) || model.Equal(b, state{b.owners, 8}) || model.Hash(a) == model.Hash(b) {
		t.Error("different states are equal")
	}
	if got := model.DescribeState(a) + ", " + model.DescribeState(state{}) + ", " + model.DescribeOperation(
		operation{kind: lower, token: 7, by: "of x"}, nil); got != "owned by 6 7, free, lower 7 of x" {
		t.Error(got)
	}
}
