package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// An attempt is the founding in which an incarnation takes part, from its charter until Born.
type attempt struct {
	refused []uint64 // charters that this incarnation has refused, oldest first
	bound   []bool   // which listed instances are known to be bound
	all     bool     // AllBound was emitted
	born    bool     // the group is founded; phase becomes Member at the next Tick
	// proposals to the listed instances; nil if this instance did not propose the charter
	offers []offer
	until  time.Duration // when to give the charter up; zero means not set
}

type offer struct {
	pending  uint64 // ID of the pending question; zero means none
	next     time.Duration
	accepted bool
}

// begin records that this instance is bound to ch.
func (a *attempt) begin(ch *Charter, instance nodeid.ID) {
	a.bound = make([]bool, len(ch.List))
	a.bound[ch.listed(instance)] = true
}

// propose begins to offer the charter to every listed instance.
func (a *attempt) propose() { a.offers = make([]offer, len(a.bound)) }

func (a *attempt) remember(group uint64) {
	if slices.Contains(a.refused, group) {
		return
	}
	if len(a.refused) >= maxAnswered {
		a.refused = slices.Delete(a.refused, 0, 1)
	}
	a.refused = append(a.refused, group)
}

// bindOther records that the listed instance at index i is bound.
func (a *attempt) bindOther(i int) { a.bound[i] = true }

// markBorn records that the group is founded.
func (a *attempt) markBorn() { a.born = true }

// complete reports, once, that all listed instances are bound.
func (a *attempt) complete() bool {
	if a.all || slices.Contains(a.bound, false) {
		return false
	}
	a.all = true
	return true
}

// allow sets the time until which the group has to be founded.
func (a *attempt) allow(until time.Duration) { a.until = until }

// end forgets the offers of a charter whose group is founded.
func (a *attempt) end() { a.offers = nil }

// offered records that the charter was offered to the listed instance at index i.
func (a *attempt) offered(i int, question uint64, next time.Duration) {
	a.offers[i].pending, a.offers[i].next = question, next
}

// answered returns the index of the listed instance to which a pending question went, or -1. The
// question is no longer pending then.
func (a *attempt) answered(question uint64) int {
	at := slices.IndexFunc(a.offers, func(o offer) bool { return o.pending == question })
	if at >= 0 {
		a.offers[at].pending = 0
	}
	return at
}

// hear records the answer of the listed instance at index i to the charter. It returns why the
// instance has refused the charter, or "". It ignores an answer of another incarnation.
func (a *attempt) hear(i int, ch *Charter, outcome Outcome, from nodeid.ID, answer []byte) string {
	l := ch.List[i]
	if outcome != Answered {
		return ""
	}
	v, err := decodeVerdict(answer)
	if err != nil || from != l.Instance || v.Group != ch.Group {
		return ""
	}
	if v.Refusal == Accepted {
		a.agree(i)
		return ""
	}
	text := nameOf(l.Name, l.Addr) + " has refused the charter: " + v.Refusal.String()
	if v.Detail != "" {
		text += ": " + v.Detail
	}
	return text
}

// agree records that the listed instance at index i has accepted the charter.
func (a *attempt) agree(i int) {
	a.offers[i].accepted = true
	a.bindOther(i)
}
