package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// ErrUnknown means that a history has holes and cannot be judged.
var ErrUnknown = errors.New("history: it cannot be judged")

// Options are the options of Judge. The zero value is for a history with one clock.
type Options struct {
	// Uncertainty is the largest difference between two clocks of the history.
	Uncertainty time.Duration

	// Settle is the time for which the replicated state may keep a request after its call has
	// failed, or a hold after its caller has released or lost the lock. A caller must also be
	// notified of the end of its lock within Settle. Settle must be longer than any lease together
	// with its locks' expiry delay, and longer than any time without a leader. Zero means 1 minute.
	Settle time.Duration

	// Settled means that the recording ends after all calls and locks have ended. Everything that
	// the state then keeps is a violation.
	Settled bool
}

// Violation is the error for a history that mortise must not produce.
type Violation struct {
	Rule   Rule
	Text   string
	Events []Event
}

// Rule is the rule that a violation breaks.
type Rule string

// The rules of Judge.
const (
	Agree   Rule = "agree"   // all voters record the same for each log entry
	Overlap Rule = "overlap" // the permits of all holders of a key do not exceed the total
	Tokens  Rule = "tokens"  // a later grant of a key has a higher token, and no token is given twice
	Order   Rule = "order"   // first come, first served
	Ends    Rule = "ends"    // only a granted lock ends, and only once
	Real    Rule = "real"    // the order of the log is possible in real time
	// Belief means that no key is granted while another caller believes that it holds the key,
	// unless both may hold it at the same time.
	Belief  Rule = "belief"
	Phantom Rule = "phantom" // the state has granted each token that a call returned
	Kept    Rule = "kept"    // when a lock ends for its caller, the state also ends it
	Zombie  Rule = "zombie"  // when the state ends a lock, the lock also ends for its caller
	Inside  Rule = "inside"  // a request that enters a lock again gets no more than the lock excludes
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

// Judge returns nil if mortise may produce the history, a *Violation if it must not, and an error
// that wraps ErrUnknown if the history cannot be judged. The events of one stream must be in the
// order in which they were recorded. The events of different streams may be mixed in any order.
//
// Judge verifies that the order of the log explains the results of all calls:
//
//   - It replays the accounts (rules Agree, Overlap, Tokens, Order, Ends).
//   - It computes the earliest possible time of each grant and each end. These times never
//     decrease from one entry of the log to the next. A grant is not before the call that
//     requested the lock. An end is not before the time until which the holder believed that it
//     held the lock, unless the lock ended by force. If a caller observed a grant or an end
//     before its earliest possible time, Judge reports a violation (rules Real and Belief).
//   - It searches for missing grants and ends (rules Phantom, Kept, Zombie).
//   - It compares the terms of each request that entered a lock again with those that the state has
//     granted to this lock, or with a reader's behind its downgrade (rule Inside).
//   - It replays the passes of each stay in the order of their tokens in the same way, between the
//     grant and the end of the stay (rules Tokens, Phantom, Real, Belief).
//
// Judge allows three things. The holder of a lock that was ended by force may believe for longer
// that it holds the lock. The call of a crashed caller may have been granted or not. The lock of a
// crashed holder may end at any time.
func Judge(events []Event, o Options) error {
	if o.Settle == 0 {
		o.Settle = time.Minute
	}
	j := &judge{events: events, uncertain: int64(o.Uncertainty), settle: int64(o.Settle), settled: o.Settled}
	for _, step := range [...]func() error{j.readAll, j.joinAccounts, j.listGrants, j.claim, j.sweep, j.inside, j.after} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// judge is the state of one call of Judge. Events, sets, keys and grants are identified by their
// indexes in the slices, where -1 means none.
type judge struct {
	events                 []Event
	uncertain, settle, end int64
	settled                bool

	keys    map[string]int32
	sets    []set
	mutexes map[string]int32 // by key, the index of the set of exclusive requests for only this key
	kinds   map[string]int32 // all other sets, by their keys and permits
	crowded []bool           // for each key, whether a request for several keys includes it
	streams []stream
	groups  []*account
	carried []int32 // Grant events without seq

	grants  []grant
	byToken map[uint64]int32
	ordered []int32 // all grants in the order of their tokens; nil if no grant is a stay
	// for each session, the first known return of one of its tokens
	sessions map[lockfsm.SessionID]int32
	holes    error
	entered  []entered
}

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnknown, fmt.Sprintf(format, args...))
}

// broken returns a *Violation. It omits events that are -1.
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

// set is the keys and permits of a request. Equal requests share one set.
type set struct {
	like *Event
	name string
	keys []int32
}

// terms returns the terms of a request with this set for the key.
func (s *set) terms(e *Event, key int32) (permits, of int64) {
	return e.TermsOf(slices.Index(s.keys, key))
}

func (j *judge) set(e *Event) int32 {
	plain := len(e.Keys) == 0 && e.alone() && e.Upgrades == 0
	known, name := j.mutexes, e.Key
	if !plain {
		known, name = j.kinds, fmt.Sprintf("%d %d %s %d %q", e.Permits, e.Of, e.Modes, e.Upgrades,
			append([]string{e.Key}, e.Keys...))
	}
	n, found := known[name]
	if found {
		return n
	}
	n = int32(len(j.sets))
	known[name] = n
	s := set{like: e, name: e.asked(), keys: []int32{j.key(e.Key)}}
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
