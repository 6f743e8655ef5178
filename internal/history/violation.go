package history

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknown means that a history has holes and cannot be judged.
var ErrUnknown = errors.New("history: it cannot be judged")

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnknown, fmt.Sprintf(format, args...))
}

// Violation is the error for a history that mortise must not produce.
type Violation struct {
	Rule   Rule
	Text   string
	Events []Event
}

func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "history: %s: %s", v.Rule, v.Text)
	for _, e := range v.Events {
		fmt.Fprintf(&b, "\n\t%-12s ", e.Node)
		b.Write(appendLine(nil, e))
	}
	return b.String()
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
