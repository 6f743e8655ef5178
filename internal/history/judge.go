package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrUnknown says that a history has holes, so that nobody can say whether it is right. It is no
// pass.
var ErrUnknown = errors.New("history: it cannot be judged")

// Options of Judge. The zero value is right for a history on one clock.
type Options struct {
	// Uncertainty is how far two clocks of the history may be apart.
	Uncertainty time.Duration

	// Settle is how long after the end of a call, or of a lock, the state may still keep what it
	// had: longer than any lease, with the delay of its locks, and than any time without a leader.
	// What is younger at the end of the recording is not held against it. Default: 1 minute.
	Settle time.Duration

	// Settled says that the recording goes on until everything was over: what is not there at its
	// end never came.
	Settled bool
}

// Violation is why a history is not one that mortise may have.
type Violation struct {
	Rule   Rule
	Text   string  // what is wrong, in a sentence
	Events []Event // the few that show it
}

// Rule names what a violation breaks.
type Rule string

// The rules of Judge.
const (
	Agree   Rule = "agree"   // voters say the same of the same entry of the log
	Overlap Rule = "overlap" // those to whom a key is granted fit beside each other
	Tokens  Rule = "tokens"  // a later grant of a key has a higher token, and no token is given twice
	Order   Rule = "order"   // first come, first served
	Ends    Rule = "ends"    // what ends is what was granted
	Real    Rule = "real"    // the order of the log is one that could have happened in real time
	// nobody holds a key while another still believes that he does, beside whom he does not fit
	Belief  Rule = "belief"
	Phantom Rule = "phantom" // what a caller was told is in the state
	Kept    Rule = "kept"    // what is over for its caller is over in the state
	Zombie  Rule = "zombie"  // what is over in the state is over for its caller
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

// Judge says whether a history is one that mortise may have: nil; a *Violation; or an error that is
// ErrUnknown. The order of the events of one stream is that in which they were recorded; otherwise
// events may come in any order.
//
// It is a witness check: the voters' account says in which order everything took effect, and Judge
// verifies that this order explains all that callers were told. That takes one pass. It replays the
// account (rules Agree, Overlap, Tokens, Order, Ends), where those who hold a key must fit beside
// each other: all their permits are no more than any of them says there are, one of one for a
// mutex. It gives each grant and end the earliest time at which it can have happened, which is not
// before that of anything before it in the log, nor before the call that asked for it, nor while a
// holder still believed in the lock, and finds none that somebody saw earlier (rules Real and
// Belief; a try that was told of a holder saw his grant, and saw it not ended); and it looks for
// what is missing at the end (rules Phantom, Kept, Zombie).
//
// A lock that was ended by force is not held against a holder who believed in it for longer:
// whoever forces takes that upon himself.
//
// A crashed caller's call may have been granted or not. A lock that its holder did not see lost,
// since he crashed, may end at any time.
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

// judge is the state of one judgement. Events, calls, keys and grants are named by their place in
// the lists; -1 is none.
type judge struct {
	events                 []Event
	uncertain, settle, end int64
	settled                bool

	keys    map[string]int32
	sets    []set
	mutexes map[string]int32 // sets of one key for oneself alone, by its name
	kinds   map[string]int32 // the others, by all that they ask for
	crowded []bool           // keys that somebody asked for together with others
	streams []stream
	groups  []*account // in the order of their revisions
	carried []int32    // events: grants that an account began with

	grants  []grant
	byToken map[uint64]int32
	holes   error // why it is ErrUnknown, if no violation is found
}

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnknown, fmt.Sprintf(format, args...))
}

// broken makes a violation; events that are -1 are left out.
func (j *judge) broken(rule Rule, events []int32, format string, args ...any) error {
	v := &Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	for _, e := range events {
		if e >= 0 {
			v.Events = append(v.Events, j.events[e])
		}
	}
	return v
}

// unsure notes a hole.
func (j *judge) unsure(format string, args ...any) {
	if j.holes == nil {
		j.holes = unknown(format, args...)
	}
}

// set is what a request asks for: how much of which keys. Most calls ask for what was asked for
// before, a mutex.
type set struct {
	like        *Event  // one that asks for it
	name        string  // for people
	keys        []int32 // by number
	permits, of int64
}

// set gives what the request of an event asks for its number.
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

// key gives a key its number.
func (j *judge) key(name string) int32 {
	k, known := j.keys[name]
	if !known {
		k = int32(len(j.keys))
		j.keys[name] = k
		j.crowded = append(j.crowded, false)
	}
	return k
}

// meet reports whether two sets have a key in common.
func (j *judge) meet(a, b int32) bool {
	return a == b || slices.ContainsFunc(j.sets[a].keys,
		func(key int32) bool { return slices.Contains(j.sets[b].keys, key) })
}
