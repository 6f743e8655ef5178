package historytest

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Plant is a way to break a correct history.
type Plant struct {
	Name string
	// If Kinds is true, Break needs a history with locks of all kinds. Otherwise Break needs a
	// history of mutexes only, because with shared locks its result may be correct.
	Kinds bool
	// If Stays is true, Break needs a history of mutexes with stays.
	Stays bool
	// Break returns a copy in which one rule is broken, or nil if the history has no place for the
	// fault.
	Break func(events []history.Event) []history.Event
}

// Plants lists all plants.
func Plants() []Plant {
	return []Plant{
		{Name: "double grant", Break: doubleGrant},
		{Name: "duplicate token", Break: duplicateToken},
		{Name: "token going back", Break: tokenBack},
		{Name: "grant after a failed return is kept", Break: keptGrant},
		{Name: "stale held", Break: staleHeld},
		{Name: "held before it was", Break: earlyHeld},
		{Name: "a later request is served first", Break: queueJump},
		{Name: "lost release", Break: lostRelease},
		{Name: "lost grant", Break: lostGrant},
		{Name: "belief outlives the lock", Break: longBelief},
		{Name: "granted before it was asked for", Break: grantBeforeCall},
		{Name: "voters do not agree", Break: disagree},
		{Name: "a holder is not told", Break: untold},
		{Name: "a writer beside readers", Kinds: true, Break: writerBesideReaders},
		{Name: "more permits than there are", Kinds: true, Break: tooManyPermits},
		{Name: "a writer is passed", Kinds: true, Break: writerPassed},
		{Name: "a reader is passed", Kinds: true, Break: readerPassed},
		{Name: "one of several is not granted", Kinds: true, Break: oneOfSeveralMissing},
		{Name: "one of several is held by another", Kinds: true, Break: oneOfSeveralHeld},
		{Name: "another kind than was asked for", Kinds: true, Break: otherKind},
		{Name: "half of several ends", Kinds: true, Break: halfEnds},
		{Name: "a token is reserved twice", Stays: true, Break: reservedTwice},
		{Name: "a pass token is given twice", Stays: true, Break: passTwice},
		{Name: "a caller is given the token of a stay", Stays: true, Break: firstGiven},
		{Name: "a token above the last one", Stays: true, Break: passAboveLast},
		{Name: "a pass of another instance", Stays: true, Break: passElsewhere},
		{Name: "passes overlap", Stays: true, Break: passesOverlap},
		{Name: "the tokens of passes go back", Stays: true, Break: passesSwapped},
		{Name: "a pass before its stay", Stays: true, Break: passTooEarly},
		{Name: "a pass after the end of its stay", Stays: true, Break: passTooLate},
		{Name: "a pass outlives its stay", Stays: true, Break: passOutlives},
		{Name: "held by a pass that was over", Stays: true, Break: passHeldLate},
		{Name: "held by a pass before it was", Stays: true, Break: passHeldEarly},
		{Name: "a lost release of a stay", Stays: true, Break: stayKept},
		{Name: "the caller of a pass is not told", Stays: true, Break: passUntold},
		{Name: "voters do not agree about a stay", Stays: true, Break: stayDisputed},
	}
}

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

func doubleGrant(events []history.Event) []history.Event {
	a, _, ok := pair(events)
	if !ok {
		return nil
	}
	streams := 0
	for _, e := range events {
		streams = max(streams, e.Stream)
	}
	streams++
	intruder := func(e history.Event, at int64) history.Event {
		e.Stream, e.Node, e.Op, e.At = streams, "intruder", 1, at
		return e
	}
	from, to := events[a.ret].At, events[a.unlock].At
	if to-from < 10 {
		return nil
	}
	var out []history.Event
	for i, e := range events {
		out = append(out, e)
		if e.Kind == history.Grant && e.Token == a.token {
			grant, end := e, e
			grant.Seq, grant.Token, grant.Place, grant.At = e.Seq+1, e.Token+1, e.Place+1, max(e.At, from+3)
			end.Kind, end.Seq, end.Token, end.Place, end.At, end.How = history.End, e.Seq+2, e.Token+1, e.Place+1,
				max(e.At, from+6), history.ByRelease
			out = append(out, grant, end)
		}
		if i == a.ret {
			out = append(out,
				intruder(history.Event{Kind: history.Call, Key: a.key}, from+1),
				intruder(history.Event{Kind: history.Return, Outcome: history.Granted, Token: a.token + 1}, from+4),
				intruder(history.Event{Kind: history.Unlock}, from+5),
				intruder(history.Event{Kind: history.Unlocked}, from+7))
		}
	}
	return out
}

func retoken(events []history.Event, from, to lockfsm.Token) []history.Event {
	return edit(events, func(_ int, e *history.Event) bool {
		if e.Token == from {
			e.Token = to
		}
		return true
	})
}

func duplicateToken(events []history.Event) []history.Event {
	a, b, ok := pair(events)
	if !ok {
		return nil
	}
	return retoken(events, b.token, a.token)
}

func tokenBack(events []history.Event) []history.Event {
	a, b, ok := pair(events)
	if !ok {
		return nil
	}
	const free = 1 << 20 // far above all tokens of the history
	return retoken(retoken(retoken(events, a.token, a.token+free), b.token, a.token), a.token+free, b.token)
}

func keptGrant(events []history.Event) []history.Event {
	type callID struct {
		stream int
		op     uint64
	}
	keys := map[callID]string{}
	open := map[string]int{}
	told := map[lockfsm.Token]bool{}
	last := map[string]lockfsm.Token{}
	for _, e := range events {
		id := callID{e.Stream, e.Op}
		switch {
		case e.Kind == history.Call:
			keys[id] = e.Key
			open[e.Key]++
		case e.Kind == history.Return:
			open[keys[id]]--
			told[e.Token] = told[e.Token] || e.Outcome == history.Granted
		case e.Kind == history.Grant:
			last[e.Key] = max(last[e.Key], e.Token)
		}
	}
	for _, e := range events {
		if e.Kind == history.End && e.Token == last[e.Key] && !told[e.Token] && open[e.Key] == 0 {
			return edit(events, func(_ int, x *history.Event) bool {
				return x.Kind != history.End ||
					x.Token != e.Token
			})
		}
	}
	return nil
}

// staleHeld changes the answer to a try request. The answer then names a holder that had released
// the lock before the request began.
func staleHeld(events []history.Event) []history.Event {
	all := holds(events)
	for i, e := range events {
		if e.Kind != history.Return || e.Outcome != history.Held {
			continue
		}
		begun := int64(0)
		key := ""
		for _, c := range events[:i] {
			if c.Kind == history.Call && c.Stream == e.Stream && c.Op == e.Op {
				begun, key = c.At, c.Key
			}
		}
		for _, h := range all {
			if h.key == key && h.ended < begun && events[h.confirmed].At < begun {
				return edit(events, func(j int, x *history.Event) bool {
					if j == i {
						x.Token = h.token
					}
					return true
				})
			}
		}
	}
	return nil
}

// earlyHeld changes the answer to a try request. The answer then names a holder whose call began
// only after the request had returned.
func earlyHeld(events []history.Event) []history.Event {
	all := holds(events)
	for i, e := range events {
		if e.Kind != history.Return || e.Outcome != history.Held {
			continue
		}
		key := ""
		for _, c := range events[:i] {
			if c.Kind == history.Call && c.Stream == e.Stream && c.Op == e.Op {
				key = c.Key
			}
		}
		for _, h := range all {
			if h.key == key && h.begun > e.At {
				return edit(events, func(j int, x *history.Event) bool {
					if j == i {
						x.Token = h.token
					}
					return true
				})
			}
		}
	}
	return nil
}
