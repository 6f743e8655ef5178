package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise"
)

// level says how bad something is.
type level int

const (
	fine  level = iota
	watch       // something is not as it should be, and locks are granted
	broken
)

// String is also what /status.json says.
func (l level) String() string { return [...]string{"fine", "watch", "broken"}[l] }

// MarshalText makes the level a word in JSON.
func (l level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// finding is what is wrong, and what to do.
type finding struct {
	ID    string `json:"id"` // what kind it is, and of what; it stays the same while a number in the text changes
	Level level  `json:"level"`
	What  string `json:"what"`
	Next  string `json:"next"`
	Key   string `json:"key,omitempty"` // that it is about
}

// findings lists what is wrong, the worst first; if nothing is, that.
func (s *scene) findings(v *view) []finding {
	all := s.groupFindings()
	if s.status.Err == nil {
		all = append(all, s.voterFindings()...)
		all = append(all, s.lockFindings(v)...)
	}
	if len(all) > 0 {
		return all
	}
	next := "Nothing is to be done."
	if s.all.health != nil {
		next = sentence(s.all.health.Advice)
	}
	return []finding{{ID: "fine", Level: fine, What: "All is well: locks are granted.", Next: next}}
}

// groupFindings says what keeps this instance from being granted locks.
func (s *scene) groupFindings() []finding {
	st := s.status
	var f finding
	switch {
	case st.Err != nil:
		f = finding{"ended", broken, "This node has ended: " + st.Err.Error() + ".", "Restart the process. A node that has ended does not come back, and holds nothing.", ""}
	case st.Group == "":
		f = finding{"no-group", broken, "There is no group yet, so nothing is granted: " + st.Waiting + ".", "Wait if the others are still starting; else do what the line above says.", ""}
	case st.Leader == "":
		f = finding{"no-leader", broken, "No leader: nothing is granted, and what is held is lost when its session runs out. " + sentence(st.Waiting), bringBack(st), ""}
	case st.Session != "attached":
		f = finding{"no-session", broken, "This instance has no session with the leader, so it is granted nothing: " + st.Waiting + ".",
			"Wait a few seconds. If it stays like this, look whether " + st.Leader + " can be reached from here.", ""}
	case st.Waiting != "":
		f = finding{"waits", watch, sentence(st.Waiting), "Wait: it ends by itself.", ""}
	case st.Lease != "safe":
		f = finding{"lease", watch, fmt.Sprintf("The session of this instance is in danger (%s): its locks are lost in %s.", st.Lease, span(st.LeaseFor)),
			"Look at the network between here and " + st.Leader + ", and whether this process is starved.", ""}
	case s.all.err != nil:
		f = finding{"no-answer", watch, "The leader has not said who holds what: " + s.all.err.Error() + ".", "Ask again in a moment.", ""}
	default:
		return nil
	}
	return []finding{f}
}

// bringBack is the next step without a leader.
func bringBack(s mortise.Status) string {
	var names []string
	for _, v := range unseen(s) {
		if v.Votes {
			names = append(names, nameOf(v))
		}
	}
	if len(names) == 0 {
		return "Look whether the voters run and reach each other: an election takes about a second."
	}
	return "Bring back a majority of the voters. Not seen from here: " + strings.Join(names, ", ") + "."
}

func nameOf(m mortise.Member) string {
	if m.Name == "" {
		return m.Address
	}
	return m.Name
}

// voterFindings says what is wrong with the voters, as the leader sees them.
func (s *scene) voterFindings() (all []finding) {
	h := s.all.health
	if h == nil || s.status.Leader == "" {
		return nil
	}
	for _, m := range h.Missing {
		all = append(all, finding{"voter-missing/" + m.Instance, watch, fmt.Sprintf("The voter %s has not been heard of for %s.", m.Name, span(m.Silent)), sentence(h.Advice), ""})
	}
	if h.Due && len(h.Missing) == 0 {
		all = append(all, finding{"voters-change", watch, "A change of the voters is due or in flight: " + h.Change + ".", sentence(h.Advice), ""})
	}
	if len(h.CannotLose) > 0 && len(s.status.Members) > 1 {
		all = append(all, finding{"cannot-lose", watch, "The group would not survive the loss of " + strings.Join(h.CannotLose, ", or of ") + ".", sentence(h.Advice), ""})
	}
	for _, d := range h.Differs {
		all = append(all, finding{"settings-differ/" + d, watch, "A setting is not equal on all instances: " + d + ".", "Give all instances the same configuration.", ""})
	}
	return all
}

// stuckMost is how many keys that are held for long are told one by one.
const stuckMost = 3

// lockFindings says which locks somebody should look at.
func (s *scene) lockFindings(v *view) (all []finding) {
	stuck := slices.DeleteFunc(slices.Clone(s.all.keys), func(k mortise.KeyInfo) bool { return !s.isLong(k) })
	slices.SortStableFunc(stuck, func(a, b mortise.KeyInfo) int { return cmp.Compare(s.heldFor(b), s.heldFor(a)) })
	for _, k := range stuck[:min(len(stuck), stuckMost)] {
		q := k.Queue[0]
		what := fmt.Sprintf("%s is held by %s for %s, and %s.", shown(k.Key), shown(q.Holder), span(s.heldFor(k)), number(k.Waiting, "waits", "wait"))
		next := fmt.Sprintf("Look at what %s does with it. If it will not end, stop it, and then end the hold by force.", shown(q.Holder))
		if q.Expired {
			next = fmt.Sprintf("Wait: its session has expired, and its delay ends in %s.", span(q.Left))
		}
		all = append(all, finding{"held-long/" + k.Key, watch, what, next, k.Key})
	}
	if rest := len(stuck) - stuckMost; rest > 0 {
		what := fmt.Sprintf("%s more held for longer than %s while others wait.", number(rest, "key is", "keys are"), span(s.long))
		all = append(all, finding{"held-long", watch, what, "They are marked below.", ""})
	}
	for _, c := range v.Circles {
		var steps []string
		for _, l := range c {
			steps = append(steps, fmt.Sprintf("%s holds %s and waits for %s", shown(l.Holder), shown(l.Holds), shown(l.WaitsFor)))
		}
		all = append(all, finding{"circle/" + c[0].Holds, watch, "This may be a deadlock: " + strings.Join(steps, "; ") + ".",
			"If each of them does both with one piece of work, none will end: end one hold by force. Requests under Lock.Context are told of a circle before it closes.", c[0].Holds})
	}
	return all
}
