package queries

import (
	"errors"
	"fmt"
	"slices"
	"testing"

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
