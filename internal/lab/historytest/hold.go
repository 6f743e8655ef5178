package historytest

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file finds the locks in a history, for plants.

// hold is one lock of a caller, with the indexes of its events, or -1 if an event is missing.
type hold struct {
	key                            string
	token                          lockfsm.Token
	stream                         int
	op                             uint64
	call, ret, unlock, confirmed   int
	grant, end                     int
	granted, ended, begun, returns int64
}

// holds lists the locks that were granted to a caller and released with a confirmation, in the
// order of tokens. It omits passes of stays.
func holds(events []history.Event) []hold {
	tokens := map[lockfsm.Token]*hold{}
	all := returned(events)
	for i := range all {
		tokens[all[i].token] = &all[i]
	}
	for i, e := range events {
		h := tokens[e.Token]
		switch {
		case h == nil:
		case e.Kind == history.Grant && h.grant < 0:
			h.grant, h.granted = i, e.At
		case e.Kind == history.End && h.end < 0:
			h.end, h.ended = i, e.At
		}
	}
	return slices.DeleteFunc(all, func(h hold) bool { return h.grant < 0 || h.end < 0 })
}

// returned lists the locks that calls returned and released with a confirmation, in the order of
// tokens. It finds only the events of the calls.
func returned(events []history.Event) (all []hold) {
	type callID struct {
		stream int
		op     uint64
	}
	calls := map[callID]*hold{}
	for i, e := range events {
		id := callID{e.Stream, e.Op}
		h := calls[id]
		switch {
		case e.Kind == history.Call:
			calls[id] = &hold{key: e.Key, stream: e.Stream, op: e.Op, call: i, begun: e.At, ret: -1, unlock: -1,
				confirmed: -1, grant: -1, end: -1}
		case e.Kind == history.Return && e.Outcome == history.Granted:
			h.token, h.ret, h.returns = e.Token, i, e.At
		case e.Kind == history.Unlock:
			h.unlock = i
		case e.Kind == history.Unlocked:
			h.confirmed = i
		}
	}
	for _, h := range calls {
		if h.ret >= 0 && h.confirmed >= 0 {
			all = append(all, *h)
		}
	}
	slices.SortFunc(all, func(a, b hold) int { return int(a.token) - int(b.token) })
	return all
}

func pair(events []history.Event) (a, b hold, ok bool) {
	all := holds(events)
	for i := len(all) / 2; i < len(all); i++ {
		a = all[i]
		next := lockfsm.Token(0)
		for _, e := range events {
			if e.Kind == history.Grant && e.Key == a.key && e.Token > a.token && (next == 0 || e.Token < next) {
				next = e.Token
			}
		}
		for _, b = range all[i+1:] {
			if b.token == next && b.stream != a.stream {
				return a, b, true
			}
		}
	}
	return a, b, false
}

// edit calls the function change for a copy of each event, and returns the changed events. It drops
// an event for which change returns false.
func edit(events []history.Event, change func(i int, e *history.Event) bool) []history.Event {
	var out []history.Event
	for i, e := range events {
		if change(i, &e) {
			out = append(out, e)
		}
	}
	return out
}
