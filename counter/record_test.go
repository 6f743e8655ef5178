package counter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
)

// played is a node that notes all calls, and whose next answers the test gives.
type played struct {
	data     string
	revision uint64
	gets     []error
	puts     []error
	calls    []string
}

func next(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (p *played) Get(_ context.Context, key string) ([]byte, uint64, error) {
	p.calls = append(p.calls, "get "+key)
	if err := next(&p.gets); err != nil {
		return []byte("counter 1\n9 9\n"), 9, err // which is not to be read
	}
	return []byte(p.data), p.revision, nil
}

func (p *played) Put(_ context.Context, key string, data []byte, revision uint64) (uint64, error) {
	p.calls = append(p.calls, fmt.Sprintf("put %s %q after %d", key, data, revision))
	if err := next(&p.puts); err != nil {
		return 0, err
	}
	p.data, p.revision = string(data), revision+1
	return p.revision, nil
}

var errDown = errors.New("down")

// TestAllThatACounterDoes compares every call of the node, with its data, each result and each
// error.
func TestAllThatACounterDoes(t *testing.T) {
	const id = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	conflict := fmt.Errorf("so: %w", mortise.ErrConflict)
	put := func(text string, after int) string { return fmt.Sprintf("put k %q after %d", text, after) }
	last := func(n int) string { // of a counter with n additions of 1 by others
		text := fmt.Sprintf("counter 1\n%d %d\n", n, n)
		for i := max(1, n-63); i <= n; i++ {
			text += fmt.Sprintf("other-%d %d\n", i, i)
		}
		return text
	}
	for name, row := range map[string]struct {
		node  played
		sent  bool // an earlier Do had no answer
		known uint64
		delta int64
		want  string
		calls []string
	}{
		"new": {played{}, false, 0, 5, "5 <nil>", []string{"get k", put("counter 1\n5 1\n"+id+" 5\n", 0)}},
		"another": {played{data: "counter 1\n7 1\nx 7\n", revision: 3}, false, 0, -9, "-2 <nil>",
			[]string{"get k", put("counter 1\n-2 2\nx 7\n"+id+" -2\n", 3)}},
		"nothing": {played{data: "counter 1\n7 1\nx 7\n", revision: 3}, false, 0, 0, "7 <nil>",
			[]string{"get k", put("counter 1\n7 2\nx 7\n"+id+" 7\n", 3)}},
		"made before": {played{data: "counter 1\n8 2\n" + id + " 5\nx 8\n", revision: 3}, true, 0, 5, "5 <nil>",
			[]string{"get k"}},
		"a conflict": {played{puts: []error{conflict}}, false, 0, 5, "5 <nil>", []string{"get k",
			put("counter 1\n5 1\n"+id+" 5\n", 0), "get k", put("counter 1\n5 1\n"+id+" 5\n", 0)}},
		"it cannot be read": {played{gets: []error{errDown}}, false, 0, 5, "0 down", []string{"get k"}},
		"it cannot be written": {played{puts: []error{errDown}}, false, 0, 5, "0 down",
			[]string{"get k", put("counter 1\n5 1\n"+id+" 5\n", 0)}},
		"it fails after a conflict": {played{puts: []error{conflict}, gets: []error{nil, errDown}}, false, 0, 5, "0 down",
			[]string{"get k", put("counter 1\n5 1\n"+id+" 5\n", 0), "get k"}},
		"other data": {played{data: "x"}, false, 0, 5,
			`0 mortise: bad request: the data of "k" is not a counter: use another key`, []string{"get k"}},
		"too much": {played{data: fmt.Sprint("counter 1\n", int64(math.MaxInt64), " 0\n")}, false, 0, 1,
			`0 mortise: bad request: counter "k": 9223372036854775807 and 1 exceed an int64`, []string{"get k"}},
		"forgotten": {played{data: last(70)}, true, 5, 5,
			`0 counter: it is not known whether the addition took effect: "k" had 5 additions before it, and has 70`,
			[]string{"get k"}},
		"removed": {played{data: last(4)}, true, 5, 5,
			`0 counter: it is not known whether the addition took effect: "k" had 5 additions before it, and has 4`,
			[]string{"get k"}},
		"not forgotten": {played{data: last(69), revision: 2}, true, 5, 5, "74 <nil>",
			[]string{"get k", put(strings.Replace(strings.Replace(last(69), "69 69", "74 70", 1), "other-6 6\n", "", 1)+
				id+" 74\n", 2)}},
	} {
		a := New(&row.node, "k").Addition(row.delta)
		if len(a.id) != len(id) || a.id == id {
			t.Errorf("an ID is %q", a.id)
		}
		a.id, a.sent, a.known = id, row.sent, row.known
		value, err := a.Do(t.Context())
		if got := fmt.Sprint(value, " ", err); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
		if !slices.Equal(row.node.calls, row.calls) {
			t.Errorf("%s: the calls are\n%q, want\n%q", name, row.node.calls, row.calls)
		}
	}
	node := &played{data: "counter 1\n-7 1\nx -7\n"}
	if value, err := New(node, "k").Value(t.Context()); value != -7 || err != nil {
		t.Errorf("the value is %d, %v", value, err)
	}
	node.gets = []error{errDown}
	if value, err := New(node, "k").Value(t.Context()); value != 0 || err != errDown {
		t.Errorf("a value that cannot be read is %d, %v", value, err)
	}
	node.gets = []error{errDown}
	if value, err := New(node, "k").Add(t.Context(), 2); value != 0 || err != errDown {
		t.Errorf("Add returns %d, %v", value, err)
	}
	if value, err := New(node, "k").Add(t.Context(), 2); value != -5 || err != nil {
		t.Errorf("Add returns %d, %v", value, err)
	}
}

// TestParseReadsWhatEncodeWrites compares whole records, around the number of results that are
// kept, and refuses each text that encode does not write.
func TestParseReadsWhatEncodeWrites(t *testing.T) {
	for n := range 67 {
		r := record{value: -5, count: uint64(n) + 1}
		for i := range n {
			r.last = append(r.last, result{fmt.Sprint("id", i), int64(i) - 3})
		}
		got, ok := parse(r.encode())
		if ok != (n <= kept) || ok && fmt.Sprint(got) != fmt.Sprint(r) {
			t.Errorf("%d results: %v, %v", n, got, ok)
		}
		if r.count = uint64(n); n > 0 && n <= kept {
			if _, ok := parse(r.encode()); !ok {
				t.Errorf("%d results of as many additions are refused", n)
			}
			r.count--
			if _, ok := parse(r.encode()); ok {
				t.Errorf("%d results of fewer additions are read", n)
			}
		}
	}
	for _, text := range []string{"x", form, form + "\n", form + "1\n", form + "x 1\n", form + "1 x\n", form + "1 -1\n",
		form + "1 1\na\n", form + "1 1\na x\n", form + "1 1\n\n", "counter 2\n1 1\n"} {
		if r, ok := parse([]byte(text)); ok || r.value != 0 || r.count != 0 || r.last != nil {
			t.Errorf("%q is read as %+v, %v", text, r, ok)
		}
	}
	if r, ok := parse(nil); !ok || r.value != 0 || r.count != 0 || r.last != nil {
		t.Errorf("no data is %+v, %v", r, ok)
	}
}
