package presence

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// heard is a node whose answers the test gives.
type heard struct {
	keys   []mortise.KeyInfo
	events []mortise.Event
	fails  error // at the end, or nil
	asked  []any
}

func (h *heard) List(_ context.Context, prefix string) iter.Seq2[mortise.KeyInfo, error] {
	h.asked = append(h.asked, "list "+prefix)
	return func(yield func(mortise.KeyInfo, error) bool) {
		for _, k := range h.keys {
			if !yield(k, nil) {
				return
			}
		}
		if h.fails != nil {
			yield(mortise.KeyInfo{}, h.fails)
		}
	}
}

func (h *heard) Watch(_ context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	h.asked = append(h.asked, fmt.Sprint("watch ", prefix, " ", after))
	return func(yield func(mortise.Event, error) bool) {
		for _, e := range h.events {
			if !yield(e, nil) {
				return
			}
		}
		if h.fails != nil {
			yield(mortise.Event{}, h.fails)
		}
	}
}

func (h *heard) Acquire(_ context.Context, r mortise.Request) (*mortise.Lock, error) {
	h.asked = append(h.asked, r)
	return nil, h.fails
}

var errNode = errors.New("of the node")

func id(char string) string { return strings.Repeat("A", 25) + char }

// TestWhatAMemberAcquires compares the request with all its fields. Each Run has an ID of its own.
func TestWhatAMemberAcquires(t *testing.T) {
	h := &heard{fails: errNode}
	for range 2 {
		if err := Run(t.Context(), h, "n", "value"); err != errNode {
			t.Errorf("Run returns %v", err)
		}
	}
	ids := map[string]bool{}
	for _, asked := range h.asked {
		r := asked.(mortise.Request)
		own, is := strings.CutPrefix(r.Key, "n/")
		if r.Key = ""; !is || !isID(own) || !reflect.DeepEqual(r, mortise.Request{Value: "value",
			Labels: map[string]string{"mortise.purpose": "job"}}) {
			t.Errorf("acquired %q with %+v", own, r)
		}
		ids[own] = true
	}
	if len(ids) != 2 {
		t.Errorf("the IDs are %v", ids)
	}
}

// TestIDs checks each length and each kind of character.
func TestIDs(t *testing.T) {
	for text, want := range map[string]bool{"": false, id(""): false, id("B"): true, id("Z"): true, id("2"): true,
		id("7"): true, id("BB"): false, id("1"): false, id("8"): false, id("a"): false, id("/"): false,
		"-" + id(""): false, "AA-" + id("")[2:]: false} {
		if isID(text) != want {
			t.Errorf("%q is an ID: %v", text, !want)
		}
	}
}

// TestMembersOfEachKey compares all members, from keys of which only some are members.
func TestMembersOfEachKey(t *testing.T) {
	since := time.Unix(5, 0)
	hold := func(holder string, token mortise.Token) mortise.Standing {
		return mortise.Standing{Hold: mortise.Hold{Holder: holder, Value: "of " + holder, Token: token,
			Since: since.Add(time.Duration(token))}}
	}
	h := &heard{keys: []mortise.KeyInfo{
		{Key: "n/" + id("A"), Queue: []mortise.Standing{hold("a", 9), hold("b", 0)}},
		{Key: "n/" + id("B"), Queue: []mortise.Standing{hold("b", 7)}},
		{Key: "n/" + id("C"), Queue: []mortise.Standing{hold("c", 0), hold("d", 8)}},
		{Key: "n/" + id("D")},
		{Key: "n/leader", Queue: []mortise.Standing{hold("e", 1)}},
		{Key: "n/old/" + id("E"), Queue: []mortise.Standing{hold("e", 2)}},
		{Key: "n/" + id("F"), Queue: []mortise.Standing{hold("f", 8)}},
	}}
	member := func(char, instance string, token mortise.Token) Member {
		return Member{ID: id(char), Instance: instance, Value: "of " + instance, Token: token,
			Since: since.Add(time.Duration(token))}
	}
	want := []Member{member("B", "b", 7), member("F", "f", 8), member("A", "a", 9)}
	if members, err := List(t.Context(), h, "n"); err != nil || !reflect.DeepEqual(members, want) {
		t.Errorf("%+v, %v, want %+v", members, err, want)
	}
	h.fails = errNode
	if members, err := List(t.Context(), h, "n"); err != errNode || members != nil {
		t.Errorf("when the list fails: %+v, %v", members, err)
	}
	if want := []any{"list n/", "list n/"}; !reflect.DeepEqual(h.asked, want) {
		t.Errorf("asked %q, want %q", h.asked, want)
	}
}

// TestWhatAnObserverSees compares all reports, with all members, after each kind of event.
func TestWhatAnObserverSees(t *testing.T) {
	at := func(token int) time.Time { return time.Unix(int64(token), 0) }
	event := func(kind mortise.EventKind, key, holder string, token int) mortise.Event {
		return mortise.Event{Kind: kind, Part: mortise.Part{Key: key}, At: at(token),
			Hold: mortise.Hold{Holder: holder, Value: "of " + holder, Token: mortise.Token(token)}}
	}
	held := func(key, holder string, token int) mortise.Event { return event(mortise.EventHeld, key, holder, token) }
	member := func(char, instance string, token int) Member {
		return Member{ID: id(char), Instance: instance, Value: "of " + instance, Token: mortise.Token(token),
			Since: at(token)}
	}
	current, reset := mortise.Event{Kind: mortise.EventCurrent}, mortise.Event{Kind: mortise.EventReset}
	a, b := "n/"+id("A"), "n/"+id("B")
	h := &heard{fails: errNode}
	var want [][]Member
	for _, step := range []struct {
		events  []mortise.Event
		reports []Member // nil for none
	}{
		{[]mortise.Event{reset, current}, []Member{}},
		{[]mortise.Event{current, reset, current}, nil},
		{[]mortise.Event{held(a, "a", 5), held(b, "b", 4), current}, []Member{member("B", "b", 4), member("A", "a", 5)}},
		{[]mortise.Event{held("n/x", "a", 6), held("n/y/"+id("C"), "a", 6), current}, nil},
		{[]mortise.Event{event(mortise.EventFreed, a, "", 3), event(mortise.EventLeft, a, "", 4), current}, nil},
		{[]mortise.Event{event(mortise.EventData, a, "", 5), event(mortise.EventDowngraded, a, "", 5),
			event(mortise.EventUpgraded, a, "", 5), event("", a, "", 5), current}, nil},
		{[]mortise.Event{event(mortise.EventFreed, a, "", 5), current}, []Member{member("B", "b", 4)}},
		{[]mortise.Event{event(mortise.EventFreed, b, "", 4), held(b, "b", 7), current}, []Member{member("B", "b", 7)}},
		{[]mortise.Event{held(a, "c", 8), event(mortise.EventFreed, a, "", 8), current}, nil},
		{[]mortise.Event{event(mortise.EventLeft, b, "", 7), current}, []Member{}},
		{[]mortise.Event{reset, held(a, "d", 9), current}, []Member{member("A", "d", 9)}},
		{[]mortise.Event{reset, held(a, "d", 9), current}, nil},
		{[]mortise.Event{reset, held(b, "d", 9), current}, []Member{member("B", "d", 9)}},
		{[]mortise.Event{reset, held(a, "d", 1)}, nil}, // not of one moment
	} {
		h.events = append(h.events, step.events...)
		if step.reports != nil {
			want = append(want, step.reports)
		}
	}
	var got [][]Member
	var last error
	for members, err := range Observe(t.Context(), h, "n") {
		if last != nil {
			t.Error("it goes on after an error")
		}
		if last = err; err == nil {
			got = append(got, append([]Member{}, members...))
			clear(members) // the caller owns them
		} else if members != nil {
			t.Errorf("%v with %v", members, err)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d reports, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("report %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if last != errNode || !reflect.DeepEqual(h.asked, []any{"watch n/ 0"}) {
		t.Errorf("it ends with %v, and asked %q", last, h.asked)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("enough")
	for range Observe(ctx, h, "n") {
		cancel(why)
		break // a second report would panic
	}
	h.events = nil
	for _, err := range Observe(ctx, h, "n") {
		if err != why {
			t.Errorf("after the end of the context: %v", err)
		}
	}
}
