package queries

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

var errNoMore = errors.New("the script is over")

// watched runs a Watch whose questions get the given answers, and returns the items that the Watch
// passes to Tell.
func watched(after uint64, pages []*query.LockList, events []*query.EventList) (told []string) {
	w := Watch{
		Walk: func(*query.ListRequest) (*query.LockList, error) {
			if len(pages) == 0 {
				return nil, errNoMore
			}
			page := pages[0]
			pages = pages[1:]
			return page, nil
		},
		Events: func(q *query.WatchRequest) (*query.EventList, error) {
			told = append(told, fmt.Sprint("after ", q.After))
			if len(events) == 0 {
				return nil, errNoMore
			}
			list := events[0]
			events = events[1:]
			return list, nil
		},
		Tell: func(t WatchItem) bool {
			switch {
			case t.Reset:
				told = append(told, "reset")
			case t.Current:
				told = append(told, fmt.Sprint("current ", t.Position))
			default:
				told = append(told, fmt.Sprint(t.Event.What, " ", string(t.Event.Part.GetKey()), " ", t.Event.Token, " at ",
					t.Position))
			}
			return true
		},
	}
	if err := w.Run(after); !errors.Is(err, errNoMore) {
		told = append(told, fmt.Sprint("error ", err))
	}
	return told
}

func page(leader, position uint64, more bool, locks ...*query.Lock) *query.LockList {
	return &query.LockList{Leader: leader, Position: position, More: more, Locks: locks, Next: &query.Cursor{}}
}

func heldBy(key string, token uint64) *query.Lock {
	holder := &query.Standing{Session: 1, Token: token, Part: &query.Part{Key: []byte(key)}}
	return &query.Lock{Key: []byte(key), Held: 1, Queue: []*query.Standing{holder}}
}

func event(position uint64, what lockfsm.EventKind, key string, token uint64) *query.Event {
	return &query.Event{Position: position, What: uint32(what), Part: &query.Part{Key: []byte(key)}, Token: token}
}

// An event during the reading of the state is passed once. The reading begins again if two
// leaders have answered, or if the leader's event log no longer has the needed events. A
// continued watch reads the state again only if events were missed.
func TestAWatchLeavesNothingOut(t *testing.T) {
	began, ended := lockfsm.Began, lockfsm.Ended
	for name, c := range map[string]struct {
		after  uint64
		pages  []*query.LockList
		events []*query.EventList
		want   []string
	}{
		"what happens between two pages": {
			pages: []*query.LockList{page(1, 5, true, heldBy("a", 3)), page(1, 8, false, heldBy("b", 7))},
			events: []*query.EventList{
				{Position: 8, Events: []*query.Event{event(6, ended, "a", 3), event(7, began, "b", 7),
					event(8, ended, "c", 2)}},
				{Position: 9, Events: []*query.Event{event(9, began, "a", 9)}},
			},
			want: []string{
				"reset", "1 a 3 at 0", "1 b 7 at 0", "after 5", "2 a 3 at 0", "current 8",
				"after 8", "1 a 9 at 9", "current 9", "after 9",
			},
		},
		"another leader": {
			pages: []*query.LockList{page(1, 5, true, heldBy("a", 3)), page(2, 5, false),
				page(2, 5, false, heldBy("a", 3))},
			want: []string{"reset", "1 a 3 at 0", "reset", "1 a 3 at 0", "current 5", "after 5"},
		},
		"forgotten while it was read": {
			pages:  []*query.LockList{page(1, 5, true), page(1, 9, false), page(1, 9, false)},
			events: []*query.EventList{{Missed: true}},
			want:   []string{"reset", "after 5", "reset", "current 9", "after 9"},
		},
		"it goes on": {
			after: 4,
			events: []*query.EventList{
				{Position: 6, More: true, Events: []*query.Event{event(6, began, "a", 6)}}, {Position: 6},
			},
			want: []string{"after 4", "1 a 6 at 6", "after 6", "current 6", "after 6"},
		},
		"it goes on, and something was missed": {
			after:  4,
			pages:  []*query.LockList{page(1, 9, false)},
			events: []*query.EventList{{Missed: true}},
			want:   []string{"after 4", "reset", "current 9", "after 9"},
		},
	} {
		if got := watched(c.after, c.pages, c.events); !slices.Equal(got, c.want) {
			t.Errorf("%s: told\n%q, want\n%q", name, got, c.want)
		}
	}
}

// TestAWatchAsksForAllHolders checks that a Watch asks for the other holders of a key if a page
// does not contain all of them. Waiting requests in the page do not count as holders.
func TestAWatchAsksForAllHolders(t *testing.T) {
	lock := heldBy("a", 3)
	lock.Held = 2
	lock.Queue = append(lock.Queue, &query.Standing{Session: 2, Place: 4})
	var told []uint64
	w := Watch{
		Walk: func(*query.ListRequest) (*query.LockList, error) { return page(1, 5, false, lock), nil },
		Holders: func(q *query.HoldersRequest) (*query.LockList, error) {
			if q.After != 4 {
				t.Errorf("asks for the holders after %d, want 4", q.After)
			}
			return page(1, 5, false, heldBy("a", 7)), nil
		},
		Events: func(*query.WatchRequest) (*query.EventList, error) { return nil, errNoMore },
		Tell: func(i WatchItem) bool {
			if i.Event != nil {
				told = append(told, i.Event.Token)
			}
			return true
		},
	}
	if err := w.Run(0); !errors.Is(err, errNoMore) {
		t.Fatal(err)
	}
	if want := []uint64{3, 7}; !slices.Equal(told, want) {
		t.Errorf("passes holds with tokens %d, want %d", told, want)
	}
}

// TestEachHoldOfTheStateIsTold begins a watch at a state with data, holds of each kind, intentions
// and waiting requests, and compares all items whole. What is told once is not told again, if a
// later page shows it too.
func TestEachHoldOfTheStateIsTold(t *testing.T) {
	part := &query.Part{Key: []byte("a"), Mode: uint32(lockfsm.ModeS)}
	data := &query.Data{Value: []byte("d"), Revision: 9}
	plain := &query.Standing{Session: 1, Record: []byte("r"), Token: 3, Since: 4, Value: []byte("v"), Part: part, Place: 5}
	upgrade := &query.Standing{Session: 2, Record: []byte("s"), Token: 6, Upgrades: true, Part: part}
	gone := &query.Standing{Session: 3, Record: []byte("u"), Token: 7, Gone: true, Part: part}
	intention := &query.Standing{Session: 4, Token: 8, Part: &query.Part{Key: []byte("a/b"), Tree: true}}
	waits := &query.Standing{Session: 5, Part: part}
	lock := func(held uint32, all ...*query.Standing) *query.Lock {
		return &query.Lock{Key: []byte("a"), Data: data, Held: held, Queue: all}
	}
	pages := []*query.LockList{page(1, 5, true, lock(4, plain, upgrade, gone, intention, waits)),
		page(1, 5, false, lock(3, plain, upgrade, gone), &query.Lock{Key: []byte("b"), Waiting: 1,
			Queue: []*query.Standing{{Session: 6, Part: &query.Part{Key: []byte("b")}}}})}
	var got []WatchItem
	w := Watch{Origin: &query.Origin{Rights: "o"}, Prefix: "p",
		Walk: func(q *query.ListRequest) (*query.LockList, error) {
			if string(q.Prefix) != "p" || q.Origin.GetRights() != "o" {
				t.Errorf("walks with %v", q)
			}
			list := pages[0]
			pages = pages[1:]
			return list, nil
		},
		Events: func(q *query.WatchRequest) (*query.EventList, error) {
			if len(q.Prefixes) != 1 || string(q.Prefixes[0]) != "p" || q.Origin.GetRights() != "o" || q.After != 5 {
				t.Errorf("asks with %v", q)
			}
			return nil, errNoMore
		},
		Tell: func(i WatchItem) bool {
			got = append(got, i)
			return true
		},
	}
	if err := w.Run(0); !errors.Is(err, errNoMore) {
		t.Fatal(err)
	}
	want := []WatchItem{{Reset: true},
		{Event: &query.Event{What: uint32(lockfsm.Wrote), Part: &query.Part{Key: []byte("a")}, Data: data}},
		{Event: &query.Event{What: uint32(lockfsm.Began), Part: part, Token: 3, Session: 1, Record: []byte("r"), At: 4,
			Value: []byte("v")}},
		{Event: &query.Event{What: uint32(lockfsm.Upgraded), Part: part, Token: 6, Session: 2, Record: []byte("s")}},
		{Event: &query.Event{What: uint32(lockfsm.Began), Part: part, Token: 7, Session: 3, Record: []byte("u")}},
		{Event: &query.Event{What: uint32(lockfsm.Left), Part: part, Token: 7, Session: 3, Record: []byte("u")}},
		{Current: true, Position: 5}}
	if !slices.EqualFunc(got, want, func(a, b WatchItem) bool {
		return a.Reset == b.Reset && a.Current == b.Current && a.Position == b.Position && proto.Equal(a.Event, b.Event)
	}) {
		t.Errorf("told\n%v\nwant\n%v", got, want)
	}
}

// TestWhichEventsAReadingPassesOn gives a reading two events of each kind after another, of a hold
// that it knows and of one that it does not know, and of data.
func TestWhichEventsAReadingPassesOn(t *testing.T) {
	write := func(revision uint64, value string) *query.Event {
		e := event(0, lockfsm.Wrote, "a", 0)
		e.Data = &query.Data{Revision: revision, Value: []byte(value)}
		return e
	}
	of := func(what lockfsm.EventKind) *query.Event { return event(0, what, "a", 3) }
	began, ended, left, valued := of(lockfsm.Began), of(lockfsm.Ended), of(lockfsm.Left), of(lockfsm.Valued)
	lowered, upgraded := of(lockfsm.Lowered), of(lockfsm.Upgraded)
	for i, c := range []struct {
		events []*query.Event
		passes []bool
	}{
		{[]*query.Event{began, began, upgraded}, []bool{true, false, false}},
		{[]*query.Event{upgraded, upgraded, began}, []bool{true, false, false}},
		{[]*query.Event{ended, began, ended, ended}, []bool{false, true, true, false}},
		{[]*query.Event{valued, lowered, began, valued, lowered}, []bool{false, false, true, true, true}},
		{[]*query.Event{left, began, left, left}, []bool{false, true, true, false}},
		{[]*query.Event{began, left, ended, began, left}, []bool{true, true, true, true, true}},
		{[]*query.Event{began, event(0, lockfsm.Ended, "b", 3), event(0, lockfsm.Ended, "a", 4), ended},
			[]bool{true, false, false, true}},
		{[]*query.Event{write(4, ""), write(5, "d"), write(5, "d"), write(4, "d"), write(6, ""), write(6, "")},
			[]bool{false, true, false, false, true, false}},
		{[]*query.Event{event(0, 99, "a", 3)}, []bool{false}},
	} {
		r := reading{held: map[holdID]bool{}, left: map[holdID]bool{}, data: map[string]uint64{}}
		for j, e := range c.events {
			if got := r.goesOn(e); got != c.passes[j] {
				t.Errorf("row %d, event %d: passed on %v", i, j, got)
			}
		}
	}
}

// TestAWatchEndsWithItsCaller ends a watch at each of its items, and lets each of its questions
// fail.
func TestAWatchEndsWithItsCaller(t *testing.T) {
	broken, all := errors.New("broken"), 0
	for end := 0; end <= all; end++ {
		lock := heldBy("a", 3)
		lock.Held, lock.Data = 2, &query.Data{Value: []byte("d"), Revision: 1}
		lock.Queue[0].Gone = true
		told, asked := 0, 0
		fails := func() error {
			if asked++; asked > 20 {
				return errNoMore
			}
			return nil
		}
		w := Watch{
			Walk: func(*query.ListRequest) (*query.LockList, error) { return page(1, 5, false, lock), fails() },
			Holders: func(*query.HoldersRequest) (*query.LockList, error) {
				return page(1, 7, false, heldBy("a", 7)), fails()
			},
			Events: func(q *query.WatchRequest) (*query.EventList, error) {
				return &query.EventList{Position: q.After + 1, Events: []*query.Event{event(q.After+1, lockfsm.Began, "b",
					q.After)}}, fails()
			},
			Tell: func(WatchItem) bool { told++; return told != end },
		}
		err := w.Run(0)
		if end == 0 {
			all = told
			if !errors.Is(err, errNoMore) || all < 10 {
				t.Fatalf("%d items, %v", all, err)
			}
		} else if err != nil || told != end {
			t.Errorf("after %d items the watch ends with %v, after item %d", told, err, end)
		}
	}
	for question := 1; question <= 5; question++ {
		asked := 0
		fails := func() error {
			if asked++; asked == question {
				return broken
			}
			return nil
		}
		lock := heldBy("a", 3)
		lock.Held = 2
		w := Watch{
			Walk: func(*query.ListRequest) (*query.LockList, error) {
				return page(1, 5+uint64(asked), asked == 0, lock), fails()
			},
			Holders: func(*query.HoldersRequest) (*query.LockList, error) {
				return page(1, 7, false, heldBy("a", 7)), fails()
			},
			Events: func(q *query.WatchRequest) (*query.EventList, error) { return &query.EventList{Position: 99}, fails() },
			Tell:   func(WatchItem) bool { return asked <= 6 },
		}
		if err := w.Run(0); err != broken || asked != question {
			t.Errorf("question %d fails, and %d are asked: %v", question, asked, err)
		}
	}
}
