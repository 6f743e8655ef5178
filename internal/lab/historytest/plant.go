package historytest

import (
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Plant is a way to break a correct history.
type Plant struct {
	Name string
	// If Kinds is true, Break needs a history with locks of all kinds. Otherwise Break needs a
	// history of mutexes only, because with shared locks its result may be correct.
	Kinds bool
	// If Downgrades is true, Break needs a history with locks of all kinds and downgrades.
	Downgrades bool
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
		{Name: "a reader beside a writer that has not lowered", Downgrades: true, Break: loweredLate},
		{Name: "a downgrade that the state did not make", Downgrades: true, Break: neverShared},
		{Name: "a downgrade that no caller asked for", Downgrades: true, Break: notLowered},
		{Name: "a writer beside a lowered one", Downgrades: true, Break: writerBesideLowered},
		{Name: "a downgrade after the end", Downgrades: true, Break: sharedTooLate},
		{Name: "a downgrade of a reader", Downgrades: true, Break: sharedTwice},
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
