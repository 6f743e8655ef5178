package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrUnknown means that a history has holes and cannot be judged. It may still be wrong.
var ErrUnknown = errors.New("history: it cannot be judged")

// Options of Judge. The zero value is right for a history on one clock.
type Options struct {
	// Uncertainty is the largest difference of two clocks of the history.
	Uncertainty time.Duration

	// Settle is how long after the end of a call, or of a lock, the state may still keep what it had.
	// It must be longer than any lease, with the delay of its locks, and than any time without a
	// leader. Younger leftovers at the end of the recording are no violation. Zero means 1 minute.
	Settle time.Duration

	// Settled means that the recording lasts until everything was over: what is missing at its end
	// never came.
	Settled bool
}

// Violation is why a history is not one that mortise may produce.
type Violation struct {
	Rule   Rule
	Text   string  // what is wrong, in one sentence
	Events []Event // the few that show it
}

// Rule is the rule that a violation breaks.
type Rule string

// The rules of Judge.
const (
	Agree   Rule = "agree"   // voters agree on each entry of the log
	Overlap Rule = "overlap" // the grants that hold a key fit beside each other
	Tokens  Rule = "tokens"  // a later grant of a key has a higher token, and no token is given twice
	Order   Rule = "order"   // first come, first served
	Ends    Rule = "ends"    // only what was granted ends
	Real    Rule = "real"    // the order of the log is possible in real time
	// Belief: no caller is granted a key while another still believes in a hold that does not fit
	// beside it.
	Belief  Rule = "belief"
	Phantom Rule = "phantom" // the state has what a caller was told
	Kept    Rule = "kept"    // what has ended for its caller ends in the state
	Zombie  Rule = "zombie"  // what has ended in the state ends for its caller
)

func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "history: %s: %s", v.Rule, v.Text)
	for _, e := range v.Events {
		fmt.Fprintf(&b, "\n\t%-12s ", e.Node)
		b.Write(appendLine(nil, e))
	}
	return b.String()
}

// Judge returns nil if a history is one that mortise may produce, a *Violation if it is not, and an
// error that wraps ErrUnknown if it cannot be judged. The events of one stream must be in the order
// in which they were recorded; streams may be mixed in any order.
//
// It is a witness check. The voters' account is the order in which everything took effect, and
// Judge verifies in one pass that this order explains all that callers were told.
//
// It replays the account (rules Agree, Overlap, Tokens, Order, Ends). The holders of a key must fit
// beside each other: all their permits are at most the lowest total that any of them names, one of
// one for a mutex.
//
// It gives each grant and end the earliest possible time: not before anything before it in the log,
// not before the call that asked for it, and not while a holder still believes in the lock. No
// caller may have seen it earlier (rules Real and Belief). A try that was told of a holder has seen
// its grant, and has seen that it had not ended.
//
// Finally it searches for what is missing at the end (rules Phantom, Kept, Zombie).
//
// A holder may believe longer in a lock that was ended by force: the operator accepts that. A
// crashed caller's call may have been granted or not. A lock may end at any time if its holder
// crashed and so did not see it lost.
func Judge(events []Event, o Options) error {
	if o.Settle == 0 {
		o.Settle = time.Minute
	}
	j := &judge{events: events, uncertain: int64(o.Uncertainty), settle: int64(o.Settle), settled: o.Settled}
	for _, step := range [...]func() error{j.readAll, j.joinAccounts, j.listGrants, j.claim, j.sweep, j.after} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// judge is the state of one judgement. Events, calls, keys and grants are named by their index in
// the lists; -1 is none.
type judge struct {
	events                 []Event
	uncertain, settle, end int64
	settled                bool

	keys    map[string]int32
	sets    []set
	mutexes map[string]int32 // sets of one exclusive key, by its name
	kinds   map[string]int32 // the other sets, by everything that they ask for
	crowded []bool           // keys that a request asked for together with others
	streams []stream
	groups  []*account // in the order of their revisions
	carried []int32    // events: grants with which an account began

	grants  []grant
	byToken map[uint64]int32
	holes   error // why it is ErrUnknown, if no violation is found
}

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnknown, fmt.Sprintf(format, args...))
}

// broken returns a violation; events that are -1 are left out.
func (j *judge) broken(rule Rule, events []int32, format string, args ...any) error {
	v := &Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	for _, e := range events {
		if e >= 0 {
			v.Events = append(v.Events, j.events[e])
		}
	}
	return v
}

func (j *judge) unsure(format string, args ...any) {
	if j.holes == nil {
		j.holes = unknown(format, args...)
	}
}

// set is what a request asks for. Most calls ask for a mutex that an earlier call has asked for.
type set struct {
	like        *Event  // one event that asks for it
	name        string  // for messages
	keys        []int32 // by number
	permits, of int64
}

func (j *judge) set(e *Event) int32 {
	plain := len(e.Keys) == 0 && e.alone()
	known, name := j.mutexes, e.Key
	if !plain {
		known, name = j.kinds, fmt.Sprintf("%d %d %q", e.Permits, e.Of, append([]string{e.Key}, e.Keys...))
	}
	n, found := known[name]
	if found {
		return n
	}
	n = int32(len(j.sets))
	known[name] = n
	s := set{like: e, name: e.asked(), keys: []int32{j.key(e.Key)}}
	s.permits, s.of = e.Terms()
	for _, key := range e.Keys {
		s.keys = append(s.keys, j.key(key))
	}
	for _, key := range s.keys {
		j.crowded[key] = j.crowded[key] || len(s.keys) > 1
	}
	j.sets = append(j.sets, s)
	return n
}

func (j *judge) key(name string) int32 {
	k, known := j.keys[name]
	if !known {
		k = int32(len(j.keys))
		j.keys[name] = k
		j.crowded = append(j.crowded, false)
	}
	return k
}

func (j *judge) meet(a, b int32) bool {
	return a == b || slices.ContainsFunc(j.sets[a].keys,
		func(key int32) bool { return slices.Contains(j.sets[b].keys, key) })
}
