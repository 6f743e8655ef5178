package barrier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// played is a node that notes all calls, and whose answers the test gives.
type played struct {
	info   mortise.KeyInfo
	peeks  []error // of the next calls of Peek; nil is none
	puts   []error
	events []mortise.Event
	ends   error // of the watch
	calls  []string
}

func next(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (p *played) Acquire(context.Context, mortise.Request) (*mortise.Lock, error) {
	return nil, errors.New("not here")
}

func (p *played) Peek(_ context.Context, key string) (mortise.KeyInfo, error) {
	p.calls = append(p.calls, "peek "+key)
	return p.info, next(&p.peeks)
}

func (p *played) Put(_ context.Context, key string, data []byte, revision uint64) (uint64, error) {
	p.calls = append(p.calls, fmt.Sprintf("put %s %s after %d", key, data, revision))
	if err := next(&p.puts); err != nil {
		return 0, err
	}
	if p.info.Data, p.info.Revision = data, p.info.Revision+1; data == nil {
		p.info.Revision = 0
	}
	return p.info.Revision, nil
}

func (p *played) Watch(_ context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	p.calls = append(p.calls, fmt.Sprint("watch ", prefix, " ", after))
	return func(yield func(mortise.Event, error) bool) {
		for _, e := range p.events {
			if !yield(e, nil) {
				return
			}
		}
		if p.ends != nil {
			yield(mortise.Event{}, p.ends)
		}
	}
}

var errDown = errors.New("down")

// TestWhatIsRefusedAtOnce compares the whole error of each bad argument, at each bound.
func TestWhatIsRefusedAtOnce(t *testing.T) {
	node := &played{}
	for n, want := range map[int]string{0: `barrier: latch "x" of 0 participants: must be 1 to 128`, 1: "<nil>",
		128: "<nil>", 129: `barrier: latch "x" of 129 participants: must be 1 to 128`} {
		if _, err := NewLatch(node, "x", n); fmt.Sprint(err) != want {
			t.Errorf("%d participants: %v", n, err)
		}
	}
	if _, err := NewDouble(nil, "x", 1); fmt.Sprint(err) != "barrier: the node is nil" {
		t.Error(err)
	}
	if _, err := NewCyclic(node, "x", 0, "a"); fmt.Sprint(err) != `barrier: cyclic barrier "x" of 0 participants: must `+
		`be 1 to 128` {
		t.Error(err)
	}
	for name, rule := range map[string]string{
		"":                       "it is empty",
		strings.Repeat("n", 129): "it has 129 bytes, more than 128",
		"a\xff":                  "it is not UTF-8",
		"\na":                    "it has a control character",
		"a\nb":                   "it has a control character",
		"a":                      "",
	} {
		want := "<nil>"
		if rule != "" {
			want = fmt.Sprintf("barrier: the name %.64q of a participant: %s", name, rule)
		}
		if err := checkName(name); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
		if _, err := NewCyclic(node, "x", 1, name); fmt.Sprint(err) != want {
			t.Errorf("cyclic, %q: %v, want %s", name, err, want)
		}
		latch, _ := NewLatch(node, "x", 1)
		if err := latch.checkName(name); fmt.Sprint(err) != want {
			t.Errorf("latch, %q: %v, want %s", name, err, want)
		}
	}
	latch, _ := NewLatch(node, "x", 100) // 39 bytes for each, with a comma
	for length, want := range map[int]string{36: "<nil>", 37: fmt.Sprintf("barrier: the name %q of a participant has 39 "+
		"bytes as JSON, more than 38: this is the limit of a latch of 100", strings.Repeat("n", 37))} {
		if err := latch.CountDown(t.Context(), strings.Repeat("n", length)); fmt.Sprint(err) != want {
			t.Errorf("a name of %d bytes: %v", length, err)
		}
	}
}

// TestAgree compares all calls, for each way in which the node and the step answer.
func TestAgree(t *testing.T) {
	conflict := fmt.Errorf("so: %w", mortise.ErrConflict)
	write := func(v *view) (bool, error) {
		v.Kind, v.Size = kindLatch, v.Size+1
		return v.Size < 3, nil
	}
	for name, row := range map[string]struct {
		node  played
		step  func(v *view) (bool, error)
		want  error
		calls []string
	}{
		"cannot be read": {played{peeks: []error{errDown}}, write, errDown, []string{"peek k"}},
		"nothing to do":  {played{}, func(*view) (bool, error) { return false, nil }, nil, []string{"peek k"}},
		"the step fails": {played{}, func(*view) (bool, error) { return true, errDown }, errDown, []string{"peek k"}},
		"until the step has nothing to do": {played{}, write, nil, []string{"peek k",
			`put k {"kind":"latch","size":1} after 0`, "peek k", `put k {"kind":"latch","size":2} after 1`, "peek k"}},
		"a conflict": {played{puts: []error{conflict}}, write, nil, []string{"peek k",
			`put k {"kind":"latch","size":1} after 0`, "peek k", `put k {"kind":"latch","size":1} after 0`, "peek k",
			`put k {"kind":"latch","size":2} after 1`, "peek k"}},
		"cannot be written": {played{puts: []error{errDown}}, write, errDown, []string{"peek k",
			`put k {"kind":"latch","size":1} after 0`}},
		"cannot be read again": {played{peeks: []error{nil, errDown}}, write, errDown, []string{"peek k",
			`put k {"kind":"latch","size":1} after 0`, "peek k"}},
		"data of others": {played{info: mortise.KeyInfo{Data: []byte("x"), Revision: 2}}, write, ErrMismatch,
			[]string{"peek k"}},
	} {
		p := place{&row.node, "k", kindLatch, 2}
		if err := p.agree(t.Context(), row.step); !errors.Is(err, row.want) || !slices.Equal(row.node.calls, row.calls) {
			t.Errorf("%s: %v after %q, want %v after %q", name, err, row.node.calls, row.want, row.calls)
		}
	}
	node := &played{info: mortise.KeyInfo{Data: []byte(`{"kind":"latch","size":2}`), Revision: 2}}
	p := place{node, "k", kindLatch, 2}
	for range 2 {
		if err := p.remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"peek k", "put k  after 2", "peek k", "peek k"}; !slices.Equal(node.calls, want) {
		t.Errorf("remove: %q, want %q", node.calls, want)
	}
}

// TestAwait counts the steps of a wait, for each list of events.
func TestAwait(t *testing.T) {
	event := func(kind mortise.EventKind, key string) mortise.Event {
		return mortise.Event{Kind: kind, Part: mortise.Part{Key: key}}
	}
	current, over := event(mortise.EventCurrent, ""), errors.New("over")
	for _, row := range []struct {
		events []mortise.Event
		steps  int
	}{
		{nil, 1},
		{[]mortise.Event{current, current}, 1},
		{[]mortise.Event{event(mortise.EventReset, "")}, 1},
		{[]mortise.Event{event(mortise.EventReset, ""), current, current}, 2},
		{[]mortise.Event{event(mortise.EventData, "k"), current}, 2},
		{[]mortise.Event{event(mortise.EventFreed, "k"), current}, 2},
		{[]mortise.Event{event(mortise.EventLeft, "k"), current}, 2},
		{[]mortise.Event{event(mortise.EventData, "k"), event(mortise.EventData, "other"), current}, 2},
		{[]mortise.Event{event(mortise.EventData, "k/other"), event(mortise.EventFreed, "k/other"),
			event(mortise.EventLeft, "k/other"), current}, 1},
		{[]mortise.Event{event(mortise.EventHeld, "k"), event(mortise.EventDowngraded, "k"), event(mortise.EventUpgraded,
			"k"), current}, 1},
		{[]mortise.Event{event(mortise.EventData, "k"), current, event(mortise.EventData, "k"), current}, 3},
	} {
		for ends := 0; ends <= row.steps; ends++ { // the step that ends the wait; 0 for none
			for _, fails := range []error{nil, errDown} {
				node, steps := &played{events: row.events, ends: over}, 0
				p := place{node, "k", kindLatch, 2}
				err := p.await(t.Context(), func(context.Context) (bool, error) {
					steps++
					return steps == ends && fails == nil, map[bool]error{true: fails}[steps == ends]
				})
				want, most := over, row.steps
				if ends > 0 {
					want, most = fails, ends
				}
				if err != want || steps != most || len(node.calls) > 1 || len(node.calls) == 1 && (node.calls[0] != "watch k 0" ||
					ends == 1) {
					t.Errorf("%+v, %d ends it with %v: %v after %d steps and %q; want %v after %d", row.events, ends, fails, err,
						steps, node.calls, want, most)
				}
			}
		}
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for given, want := range map[error]string{nil: "<nil>", errDown: "why: down", why: "why"} {
		if err := because(ctx, given); fmt.Sprint(err) != want || given != nil && !errors.Is(err, given) {
			t.Errorf("%v becomes %v", given, err)
		}
		if err := because(t.Context(), given); err != given {
			t.Errorf("%v becomes %v while the context goes on", given, err)
		}
	}
}

// TestViews compares the whole view of each state of a key.
func TestViews(t *testing.T) {
	queue := []mortise.Standing{{Hold: mortise.Hold{Value: "a", Token: 5}}, {Hold: mortise.Hold{Value: "b"}},
		{Hold: mortise.Hold{Value: "c", Token: 7}}}
	holders := map[mortise.Token]string{5: "a", 7: "c"}
	r := record{Kind: kindCyclic, Size: 3, Names: []string{"<a&b>"}, Round: 4, Open: true, Passed: 3, Why: "why",
		In: []mortise.Token{5}}
	data, err := r.encode()
	if want := `{"kind":"cyclic barrier","size":3,"names":["<a&b>"],"round":4,"open":true,"passed":3,"why":"why",` +
		`"in":["5"]}`; err != nil || string(data) != want {
		t.Errorf("encoded as %s, %v", data, err)
	}
	if data, err := (&record{Size: 1}).encode(); data != nil || err != nil {
		t.Errorf("no record is encoded as %q, %v", data, err)
	}
	for name, row := range map[string]struct {
		info mortise.KeyInfo
		want view
		err  string
	}{
		"nothing": {mortise.KeyInfo{}, view{holders: map[mortise.Token]string{}}, "<nil>"},
		"holds":   {mortise.KeyInfo{Queue: queue}, view{holders: holders}, "<nil>"},
		"data":    {mortise.KeyInfo{Queue: queue, Data: data, Revision: 9}, view{r, 9, holders}, "<nil>"},
		"other data": {mortise.KeyInfo{Data: []byte("x"), Revision: 9},
			view{revision: 9, holders: map[mortise.Token]string{}},
			`barrier: the participants do not agree: the data of key "k" is not that of a cyclic barrier`},
		"another kind": {mortise.KeyInfo{Data: []byte(`{"kind":"latch","size":3}`), Revision: 9},
			view{record{Kind: kindLatch, Size: 3}, 9, map[mortise.Token]string{}},
			`barrier: the participants do not agree: key "k" is used by a latch, not by a cyclic barrier`},
	} {
		p := place{&played{info: row.info}, "k", kindCyclic, 3}
		if v, err := p.view(t.Context()); fmt.Sprint(err) != row.err || !reflect.DeepEqual(v, row.want) {
			t.Errorf("%s: %+v, %v; want %+v, %s", name, v, err, row.want, row.err)
		}
	}
	p := place{&played{}, "k", kindCyclic, 3}
	v := view{record: record{Size: 2, In: []mortise.Token{4, 5, 6, 8}}, holders: map[mortise.Token]string{5: "a", 6: "b",
		7: "c", 8: "a"}}
	if got := v.alive("a", 8); !slices.Equal(got, []mortise.Token{6, 8}) || len(v.In) != 4 {
		t.Errorf("alive are %v", got)
	}
	if got := v.alive("", 0); !slices.Equal(got, []mortise.Token{5, 6, 8}) {
		t.Errorf("alive are %v", got)
	}
	for me, want := range map[mortise.Token]string{8: "<nil>",
		5: `barrier: another call has taken the place of this participant: participant "a" of cyclic barrier "k"`,
		9: `barrier: the hold of participant "a" of "k": mortise: the lock was lost`} {
		if err := v.holds(&p, "a", me); fmt.Sprint(err) != want {
			t.Errorf("hold %d: %v, want %s", me, err, want)
		}
	}
	if err := p.sized(&v); fmt.Sprint(err) != `barrier: the participants do not agree: cyclic barrier "k" has 2 `+
		`participants, not 3` || !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	if v.begin(&p, 6); !reflect.DeepEqual(v.record, record{Kind: kindCyclic, Size: 3, Round: 6}) {
		t.Errorf("it begins as %+v", v.record)
	}
}
