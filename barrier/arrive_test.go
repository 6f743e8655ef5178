package barrier

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/mortise-lock/mortise"
)

type tokens = []mortise.Token

// TestEachStepOfAnArrival compares the whole record, the state of the arrival and the error, for
// each state of a double barrier of three, in which a has the hold 5.
func TestEachStepOfAnArrival(t *testing.T) {
	all := map[mortise.Token]string{4: "b", 5: "a", 6: "c", 7: "d"}
	double := func(open bool, in ...mortise.Token) record {
		return record{Kind: kindDouble, Size: 3, Round: 2, Open: open, In: in}
	}
	for name, row := range map[string]struct {
		before   record
		revision uint64
		holders  map[mortise.Token]string
		tried    bool
		after    record
		changed  bool
		state    arrival // tried, entered and round
		fails    error
	}{
		"the first": {record{}, 0, all, false, record{Kind: kindDouble, Size: 3, Round: 5, In: tokens{5}}, true,
			arrival{tried: true}, nil},
		"the second": {double(false, 4), 1, all, false, double(false, 4, 5), true, arrival{tried: true}, nil},
		"the last":   {double(false, 4, 6), 1, all, false, double(true, 4, 6, 5), true, arrival{tried: true}, nil},
		"in":         {double(false, 4, 5), 1, all, true, double(false, 4, 5), false, arrival{tried: true}, nil},
		"in, and another has gone": {double(false, 3, 5), 1, all, true, double(false, 5), true, arrival{tried: true},
			nil},
		"entered": {double(true, 4, 5, 6), 1, all, true, double(true, 4, 5, 6), false,
			arrival{tried: true, entered: true, round: 2}, nil},
		"entered, and another has gone": {double(true, 3, 5, 6), 1, all, true, double(true, 3, 5, 6), false,
			arrival{tried: true, entered: true, round: 2}, nil},
		"the others are inside": {double(true, 4, 6, 7), 1, all, false, double(true, 4, 6, 7), false, arrival{}, nil},
		"one of them has gone":  {double(true, 3, 4, 6), 1, all, false, double(true, 4, 6), true, arrival{}, nil},
		"all of them have gone": {double(true, 1, 2, 3), 1, all, false, record{Kind: kindDouble, Size: 3, Round: 5,
			In: tokens{5}}, true, arrival{tried: true}, nil},
		"it was started again": {double(false, 3, 4), 1, map[mortise.Token]string{3: "a", 4: "b", 5: "a"}, false,
			double(false, 4, 5), true, arrival{tried: true}, nil},
		"it is in by another call": {double(false, 4, 5), 1, all, false, double(false, 4, 5), false, arrival{}, errAny},
		"its hold has ended": {double(false, 4), 1, map[mortise.Token]string{4: "b"}, false, double(false, 4), false,
			arrival{}, mortise.ErrLost},
		"it is replaced": {double(false, 4), 1, map[mortise.Token]string{4: "b", 5: "a", 6: "a"}, false, double(false, 4),
			false, arrival{}, ErrReplaced},
		"another size": {record{Kind: kindDouble, Size: 2, Round: 2, In: tokens{4}}, 1, all, false, record{Kind: kindDouble,
			Size: 2, Round: 2, In: tokens{4}}, false, arrival{}, ErrMismatch},
	} {
		p := &place{&played{}, "k", kindDouble, 3}
		v := view{row.before, row.revision, row.holders}
		a := arrival{place: p, name: "a", me: 5, tried: row.tried}
		changed, err := a.enter(&v)
		if changed != row.changed || (row.fails != errAny || err == nil) && !errors.Is(err, row.fails) ||
			!reflect.DeepEqual(v.record, row.after) {
			t.Errorf("%s: %+v, changed %v, %v; want %+v, changed %v, %v", name, v.record, changed, err, row.after,
				row.changed, row.fails)
		}
		if a.tried != row.state.tried || a.entered != row.state.entered || a.round != row.state.round {
			t.Errorf("%s: the arrival is %+v, want %+v", name, a, row.state)
		}
	}
}

var errAny = errors.New("any")

// TestEachWithdrawal compares all calls and the error, for each state that an arrival can find.
func TestEachWithdrawal(t *testing.T) {
	why := errors.New("why")
	lost := fmt.Errorf("so: %w", mortise.ErrLost)
	const in, others, alone, open = `{"kind":"double barrier","size":3,"round":2,"in":["4","5"]}`,
		`{"kind":"double barrier","size":3,"round":2,"in":["4"]}`,
		`{"kind":"double barrier","size":3,"round":2,"in":["5"]}`,
		`{"kind":"double barrier","size":3,"round":2,"open":true,"in":["4","5"]}`
	for name, row := range map[string]struct {
		data  string
		why   error
		peeks []error
		puts  []error
		want  string
		calls string
	}{
		"in":      {in, why, nil, nil, "why", "[peek k put k " + others + " after 3 peek k]"},
		"not in":  {others, why, nil, nil, "why", "[peek k put k " + others + " after 3 peek k]"},
		"alone":   {alone, why, nil, nil, "why", "[peek k put k  after 3 peek k]"},
		"nothing": {"", why, nil, nil, "why", "[peek k]"},
		"open":    {open, why, nil, nil, "<nil>", "[peek k]"},
		"lost":    {in, lost, nil, nil, lost.Error(), "[peek k put k " + others + " after 3 peek k]"},
		"conflict": {in, why, nil, []error{mortise.ErrConflict}, "why",
			"[peek k put k " + others + " after 3 peek k put k " + others + " after 3 peek k]"},
		"open and lost": {open, lost, nil, nil, `barrier: "k" has opened, but the presence is lost: ` + lost.Error(),
			"[peek k]"},
		"unknown": {in, why, nil, []error{errDown}, "barrier: it is unknown whether \"k\" has opened with \"a\": why\ndown",
			"[peek k put k " + others + " after 3]"},
		"not read": {in, why, []error{errDown}, nil, "barrier: it is unknown whether \"k\" has opened with \"a\": why\ndown",
			"[peek k]"},
	} {
		node := &played{peeks: row.peeks, puts: row.puts}
		if row.data != "" {
			node.info.Data, node.info.Revision = []byte(row.data), 3
		}
		a := arrival{place: &place{node, "k", kindDouble, 3}, name: "a", me: 5, tried: true}
		err := a.withdraw(t.Context(), row.why)
		if fmt.Sprint(err) != row.want || fmt.Sprint(node.calls) != row.calls {
			t.Errorf("%s: %v after %v, want %s after %s", name, err, node.calls, row.want, row.calls)
		}
		if a.entered && a.round != 2 {
			t.Errorf("%s: entered in round %d", name, a.round)
		}
	}
}

// TestEachStepOfAWait compares the whole record, the state of the participant and the error, for
// each state of a cyclic barrier of three, in which a has the hold 5.
func TestEachStepOfAWait(t *testing.T) {
	all := map[mortise.Token]string{4: "b", 5: "a", 6: "c"}
	cyclic := func(round, passed uint64, why string, in ...mortise.Token) record {
		return record{Kind: kindCyclic, Size: 3, Round: round, Passed: passed, Why: why, In: in}
	}
	type state struct {
		last, joined uint64
		over         bool
	}
	for name, row := range map[string]struct {
		before       record
		holders      map[mortise.Token]string
		known        map[mortise.Token]string
		last, joined uint64
		after        record
		changed      bool
		state        state
		fails        string
	}{
		"nothing yet": {record{}, all, nil, 0, 0, record{Kind: kindCyclic, Size: 3, Round: 5}, true, state{}, ""},
		"the first":   {cyclic(7, 6, "old"), all, nil, 6, 0, cyclic(7, 6, "old", 5), true, state{6, 7, false}, ""},
		"the second":  {cyclic(7, 6, "", 4), all, nil, 6, 0, cyclic(7, 6, "", 4, 5), true, state{6, 7, false}, ""},
		"the last":    {cyclic(7, 6, "old", 4, 6), all, nil, 6, 0, cyclic(8, 7, ""), true, state{6, 7, false}, ""},
		"it waits":    {cyclic(7, 6, "", 4, 5), all, nil, 6, 7, cyclic(7, 6, "", 4, 5), false, state{6, 7, false}, ""},
		"passed":      {cyclic(8, 7, ""), all, nil, 6, 7, cyclic(8, 7, ""), false, state{7, 0, true}, ""},
		"broken": {cyclic(8, 6, "why"), all, nil, 6, 7, cyclic(8, 6, "why"), false, state{7, 0, true},
			`barrier: the generation is broken: generation 7 of "k": why`},
		"missed one": {cyclic(9, 6, "why", 4), all, nil, 6, 0, cyclic(9, 6, "why", 4), false, state{8, 0, true},
			`barrier: the generation is broken: generation 8 of "k": why`},
		"removed": {record{}, all, nil, 6, 0, record{}, false, state{0, 0, true},
			`barrier: the generation is broken: "k" was removed, or its group was founded anew`},
		"removed in the wait": {record{}, all, nil, 0, 7, record{}, false, state{0, 0, true},
			`barrier: the generation is broken: "k" was removed, or its group was founded anew`},
		"one that is known has gone": {cyclic(7, 6, "", 3, 4), all, map[mortise.Token]string{3: "d"}, 6, 0,
			cyclic(8, 6, `participant "d" has crashed, or was started again`), true, state{6, 0, false}, ""},
		"one has gone": {cyclic(7, 6, "", 3, 4), all, nil, 6, 0,
			cyclic(8, 6, "a participant has crashed, or was started again"), true, state{6, 0, false}, ""},
		"two have gone, and one is known": {cyclic(7, 6, "", 2, 3), all, map[mortise.Token]string{3: "d"}, 6, 0,
			cyclic(8, 6, `participant "d" has crashed, or was started again`), true, state{6, 0, false}, ""},
		"it was started again": {cyclic(7, 6, "", 3, 4), map[mortise.Token]string{3: "a", 4: "b", 5: "a"}, nil, 0, 0,
			cyclic(8, 6, `participant "a" has crashed, or was started again`), true, state{}, ""},
		"its hold has ended": {cyclic(7, 6, "", 4), map[mortise.Token]string{4: "b"}, nil, 6, 0, cyclic(7, 6, "", 4), false,
			state{6, 0, false}, `barrier: the hold of participant "a" of "k": mortise: the lock was lost`},
		"another size": {record{Kind: kindCyclic, Size: 2, Round: 7, Passed: 6, In: tokens{4}}, all, nil, 6, 0,
			record{Kind: kindCyclic, Size: 2, Round: 7, Passed: 6, In: tokens{4}}, false, state{6, 0, false},
			`barrier: the participants do not agree: cyclic barrier "k" has 2 participants, not 3`},
		"another size before": {record{Kind: kindCyclic, Size: 2, Round: 7, Passed: 6}, all, nil, 6, 0,
			cyclic(7, 6, "", 5), true, state{6, 7, false}, ""},
	} {
		c := &Cyclic{place: place{&played{}, "k", kindCyclic, 3}, participant: "a", last: row.last, joined: row.joined}
		w := wait{c: c, me: 5, names: map[mortise.Token]string{}}
		for token, name := range row.known {
			w.names[token] = name
		}
		v := view{row.before, 1, row.holders}
		if row.before.Kind == "" {
			v.revision = 0
		}
		changed, err := w.join(&v)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if changed != row.changed || text != row.fails || !reflect.DeepEqual(v.record, row.after) {
			t.Errorf("%s: %+v, changed %v, %v; want %+v, changed %v, %s", name, v.record, changed, err, row.after,
				row.changed, row.fails)
		}
		if got := (state{c.last, c.joined, w.over}); got != row.state {
			t.Errorf("%s: the participant is %+v, want %+v", name, got, row.state)
		}
	}
}

// TestHowAWaitGivesUp compares all calls, the error and the state of the participant, for each
// state that it can find.
func TestHowAWaitGivesUp(t *testing.T) {
	why := errors.New("why")
	const in, passed, others = `{"kind":"cyclic barrier","size":3,"round":7,"passed":6,"in":["4","5"]}`,
		`{"kind":"cyclic barrier","size":3,"round":8,"passed":7}`,
		`{"kind":"cyclic barrier","size":3,"round":8,"passed":6,"why":"participant \"b\" has crashed"}`
	const mine = `{"kind":"cyclic barrier","size":3,"round":8,"passed":6,"why":"participant \"a\" has stopped waiting"}`
	unknown := "barrier: the end of generation 7 of \"k\" is unknown: why\ndown"
	for name, row := range map[string]struct {
		data  string
		peeks []error
		puts  []error
		want  string
		calls string
		last  uint64 // joined is 0 then, and 7 if last is 6
	}{
		"in":     {in, nil, nil, "why", "[peek k put k " + mine + " after 3 peek k]", 7},
		"passed": {passed, nil, nil, "<nil>", "[peek k]", 7},
		"broken": {others, nil, nil, `barrier: the generation is broken: generation 7 of "k": participant "b" has crashed`,
			"[peek k]", 7},
		"removed": {"", nil, nil, `barrier: the generation is broken: "k" was removed, or its group was founded anew`,
			"[peek k]", 0},
		"a conflict": {in, nil, []error{mortise.ErrConflict}, "why", "[peek k put k " + mine + " after 3 peek k put k " +
			mine + " after 3 peek k]", 7},
		"not read":    {in, []error{errDown}, nil, unknown, "[peek k]", 6},
		"not written": {in, nil, []error{errDown}, unknown, "[peek k put k " + mine + " after 3]", 6},
		"not read again": {in, []error{nil, errDown}, nil, unknown,
			"[peek k put k " + mine + " after 3 peek k]", 6},
	} {
		node := &played{peeks: row.peeks, puts: row.puts}
		if row.data != "" {
			node.info.Data, node.info.Revision = []byte(row.data), 3
		}
		c := &Cyclic{place: place{node, "k", kindCyclic, 3}, participant: "a", last: 6, joined: 7}
		w := wait{c: c, me: 5, names: map[mortise.Token]string{}}
		err := w.withdraw(t.Context(), why)
		if fmt.Sprint(err) != row.want || fmt.Sprint(node.calls) != row.calls {
			t.Errorf("%s: %v after %v, want %s after %s", name, err, node.calls, row.want, row.calls)
		}
		if joined := map[bool]uint64{true: 7}[row.last == 6]; c.last != row.last || c.joined != joined {
			t.Errorf("%s: the last generation is %d, joined is %d; want %d and %d", name, c.last, c.joined, row.last, joined)
		}
	}
}
