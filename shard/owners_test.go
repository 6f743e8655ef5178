package shard

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// heard is a node whose answers the test gives.
type heard struct {
	keys   []mortise.KeyInfo
	events []mortise.Event
	fails  error // at the end, or nil
	asked  []string
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

var errNode = errors.New("of the node")

// TestOwnersOfEachKey compares all owners, from keys of which only some are shards with a holder.
func TestOwnersOfEachKey(t *testing.T) {
	since := time.Unix(5, 0)
	hold := func(holder string, token mortise.Token) mortise.Standing {
		return mortise.Standing{Hold: mortise.Hold{Holder: holder, Token: token, Since: since.Add(time.Duration(token))}}
	}
	h := &heard{keys: []mortise.KeyInfo{
		{Key: "n/shard/10", Queue: []mortise.Standing{hold("a", 7), hold("b", 0)}},
		{Key: "n/shard/2", Queue: []mortise.Standing{hold("b", 9)}},
		{Key: "n/shard/3", Queue: []mortise.Standing{hold("c", 0), hold("d", 8)}},
		{Key: "n/shard/4"},
		{Key: "n/shard/-1", Queue: []mortise.Standing{hold("e", 1)}},
		{Key: "n/shard/x", Queue: []mortise.Standing{hold("e", 2)}},
		{Key: "n/shard/4096", Queue: []mortise.Standing{hold("e", 3)}},
		{Key: "n/shard/4095", Queue: []mortise.Standing{hold("e", 4)}},
		{Key: "n/shard/0", Queue: []mortise.Standing{hold("e", 5)}},
	}}
	owner := func(index int, instance string, token mortise.Token) Owner {
		return Owner{Index: index, Instance: instance, Token: token, Since: since.Add(time.Duration(token))}
	}
	want := []Owner{owner(0, "e", 5), owner(2, "b", 9), owner(10, "a", 7), owner(4095, "e", 4)}
	if owners, err := Owners(t.Context(), h, "n"); err != nil || !reflect.DeepEqual(owners, want) {
		t.Errorf("%+v, %v, want %+v", owners, err, want)
	}
	h.fails = errNode
	if owners, err := Owners(t.Context(), h, "n"); err != errNode || owners != nil {
		t.Errorf("when the list fails: %+v, %v", owners, err)
	}
	if want := []string{"list n/shard/", "list n/shard/"}; !reflect.DeepEqual(h.asked, want) {
		t.Errorf("asked %q, want %q", h.asked, want)
	}
}

// TestWhatAnObserverSees compares all reports, and what their owners are, after each kind of event.
func TestWhatAnObserverSees(t *testing.T) {
	at := func(token int) time.Time { return time.Unix(int64(token), 0) }
	event := func(kind mortise.EventKind, key, holder string, token int) mortise.Event {
		return mortise.Event{Kind: kind, Part: mortise.Part{Key: key}, At: at(token),
			Hold: mortise.Hold{Holder: holder, Token: mortise.Token(token)}}
	}
	held := func(key, holder string, token int) mortise.Event { return event(mortise.EventHeld, key, holder, token) }
	owner := func(index int, instance string, token int) Owner {
		return Owner{Index: index, Instance: instance, Token: mortise.Token(token), Since: at(token)}
	}
	current, reset := mortise.Event{Kind: mortise.EventCurrent}, mortise.Event{Kind: mortise.EventReset}
	both := []Owner{owner(1, "a", 5), owner(10, "b", 4)}
	h := &heard{fails: errNode}
	var want [][]Owner
	for _, step := range []struct {
		events  []mortise.Event
		reports []Owner // nil for none
	}{
		{[]mortise.Event{reset, current}, []Owner{}},
		{[]mortise.Event{current, reset, current}, nil},
		{[]mortise.Event{held("n/shard/10", "b", 4), held("n/shard/1", "a", 5), current}, both},
		{[]mortise.Event{held("n/shard/x", "a", 6), held("n/shard/4096", "a", 6), held("n/shard/-1", "a", 6), current}, nil},
		{[]mortise.Event{event(mortise.EventFreed, "n/shard/1", "", 3), event(mortise.EventLeft, "n/shard/1", "", 4),
			current}, nil},
		{[]mortise.Event{event(mortise.EventData, "n/shard/1", "", 5), event(mortise.EventDowngraded, "n/shard/1", "", 5),
			event(mortise.EventUpgraded, "n/shard/1", "", 5), event("", "n/shard/1", "", 5), current}, nil},
		{[]mortise.Event{event(mortise.EventFreed, "n/shard/1", "", 5), current}, []Owner{owner(10, "b", 4)}},
		{[]mortise.Event{held("n/shard/10", "b", 4), current}, nil},
		{[]mortise.Event{event(mortise.EventFreed, "n/shard/10", "", 4), held("n/shard/10", "c", 7), current},
			[]Owner{owner(10, "c", 7)}},
		{[]mortise.Event{held("n/shard/11", "c", 8), event(mortise.EventFreed, "n/shard/11", "", 8), current}, nil},
		{[]mortise.Event{event(mortise.EventLeft, "n/shard/10", "", 7), current}, []Owner{}},
		{[]mortise.Event{reset, held("n/shard/0", "d", 9), current}, []Owner{owner(0, "d", 9)}},
		{[]mortise.Event{reset, held("n/shard/0", "d", 9), current}, nil},
		{[]mortise.Event{reset, held("n/shard/1", "d", 9), current}, []Owner{owner(1, "d", 9)}},
		{[]mortise.Event{reset, held("n/shard/2", "d", 1)}, nil}, // not of one moment
	} {
		h.events = append(h.events, step.events...)
		if step.reports != nil {
			want = append(want, step.reports)
		}
	}
	var got [][]Owner
	var last error
	for owners, err := range Observe(t.Context(), h, "n") {
		if last != nil {
			t.Error("it goes on after an error")
		}
		if last = err; err == nil {
			got = append(got, append([]Owner{}, owners...))
			clear(owners) // the caller owns them
		} else if owners != nil {
			t.Errorf("%v with %v", owners, err)
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
	if last != errNode || !reflect.DeepEqual(h.asked, []string{"watch n/shard/ 0"}) {
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
