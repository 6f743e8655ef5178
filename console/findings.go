package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

type level int

const (
	fine   level = iota
	watch        // something is wrong, but locks are granted
	broken       // no lock is granted on this instance, or a condition of the guarantees does not hold
)

// String returns the word for the level in /status.json.
func (l level) String() string { return [...]string{"fine", "watch", "broken"}[l] }

func (l level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

type finding struct {
	ID    string   `json:"id"` // the kind and the subject of the problem, without numbers that change
	Level level    `json:"level"`
	What  string   `json:"what"`
	Why   string   `json:"why,omitempty"`
	Next  string   `json:"next"`
	Again bool     `json:"-"` // the previous finding has the same text in the field Next
	About []about  `json:"about,omitempty"`
	Items []string `json:"items,omitempty"` // for example the voters of a group without a leader
	// Commands are calls of the command mortise, for a shell.
	Commands []string `json:"commands,omitempty"`
}

type about struct {
	Key  string `json:"key"`
	Text string `json:"text"` // for this key
}

func (s *scene) findings(v *view) []finding {
	all := s.groupFindings()
	if s.status.Err == nil {
		all = append(all, s.nameFindings()...)
		all = append(all, s.voterFindings()...)
		all = append(all, s.lockFindings(v)...)
		all = append(all, s.idleFindings(v)...)
	}
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(b.Level, a.Level) })
	for i := range all {
		all[i].Again = i > 0 && all[i].Next == all[i-1].Next
		if i == 0 && forDoctor(all[i].ID) {
			all[i].Commands = []string{command(clusterOf(s.status), "doctor")}
		}
	}
	if len(all) > 0 {
		return all
	}
	next := "There is nothing to do."
	if h := s.health(); h != nil {
		next = sentence(h.Advice)
	}
	return []finding{{ID: "fine", What: "All is well: locks are granted.", Next: next}}
}

// forDoctor reports whether mortise doctor states more about a finding, because it asks all
// instances.
func forDoctor(id string) bool {
	return slices.Contains([]string{"no-leader", "no-group", "no-session", "two-groups", "other-secret"}, id)
}

// groupFindings returns the problem that prevents this instance from being granted locks, or may
// soon prevent it. If several problems apply, it returns only the first, which causes the others.
func (s *scene) groupFindings() []finding {
	st := s.status
	switch {
	case st.Err != nil:
		return []finding{{
			ID: "ended", Level: broken, What: "This node has ended.", Why: sentence(st.Err.Error()),
			Next: "Restart the process. A node that has ended does not come back, and holds nothing.",
		}}
	case strings.HasPrefix(st.Waiting, twoGroups):
		return []finding{{
			ID: "two-groups", Level: broken,
			What: "Two groups of this cluster have leaders and grant the same locks.", Why: sentence(st.Waiting),
			Next: "Stop the instances of one of the two groups, preferably the smaller one, and start them again: " +
				"they join the other group. It does not end by itself.",
		}}
	case st.Group == "" && strings.Contains(st.Waiting, otherSide):
		return []finding{{
			ID: "other-secret", Level: broken,
			What: "This instance has no group: its secret, certificate or Cluster differs from that of the others.",
			Why:  sentence(st.Waiting),
			Next: "Follow the sentence above, and restart the instances whose configuration changes.",
		}}
	case st.Group == "":
		return []finding{{
			ID: "no-group", Level: broken, What: "There is no group yet, so nothing is granted.",
			Why:  sentence(st.Waiting),
			Next: "Wait if the others are still starting. Otherwise follow the sentence above.",
		}}
	case st.Leader == "":
		return []finding{{
			ID: "no-leader", Level: broken,
			What: "No leader: no lock is granted, and a held lock is lost when its session expires.",
			Why:  sentence(st.Waiting), Items: votersOf(st),
			Next: bringBack(st),
		}}
	case !st.Attached:
		return []finding{{
			ID: "no-session", Level: broken,
			What: "This instance has no session with the leader, so it is granted nothing.",
			Why:  sentence(st.Waiting),
			Next: "Wait a few seconds. If this persists, check whether " + st.Leader + " can be reached from here.",
		}}
	case st.GraceFor > 0:
		return []finding{{ID: "grace", Level: watch, What: "The group is new and in its grace: no lock is granted yet.",
			Why: sentence(st.Waiting), Next: "Wait: it ends by itself."}}
	case st.Waiting != "":
		return []finding{{ID: "waits", Level: watch, What: "This instance waits.", Why: sentence(st.Waiting),
			Next: "Follow the sentence above. If it names nothing to do, wait."}}
	case st.Lease != mortise.LeaseSafe:
		return []finding{{
			ID: "lease", Level: watch,
			What: fmt.Sprintf("The session of this instance is in danger (%s): its locks are lost in %s.",
				st.Lease, span(st.LeaseFor)),
			Next: "Check the network between here and " + st.Leader + ", and whether this process is short of CPU time.",
		}}
	case s.all.err != nil:
		return []finding{{ID: "no-answer", Level: watch, What: "The leader has not answered with the holders of locks.",
			Why: sentence(s.all.err.Error()), Next: "Reload the page in a moment."}}
	}
	return nil
}

// Prefixes and parts of Status.Waiting that decide the next step.
const (
	twoGroups = "two groups"
	otherSide = "the other side " // in errors of TLS, also if only one side has TLS
	unreached = " cannot be reached: bring them back"
	emptied   = " without this group's log"
)

func (s *scene) nameFindings() (all []finding) {
	if text := s.status.Unresolved; text != "" {
		all = append(all, finding{
			ID: "join", Level: watch, What: "An entry of Join leads to no address.", Why: sentence(text),
			Next: "Correct Join of this instance, or what it names. The group works without it.",
		})
	}
	if s.status.Namesake == "" {
		return all
	}
	return append(all, finding{
		ID: "namesake", Level: watch, What: "Another instance has the name of this one.",
		Why:  sentence(s.status.Namesake),
		Next: "Stop one of the two, and start it again under a Name of its own.",
	})
}

// votersOf returns a line for each voter, with what is known of it here.
func votersOf(s mortise.Status) (lines []string) {
	for _, v := range s.Voters {
		if !v.Votes {
			continue
		}
		is := "not seen from here"
		switch {
		case v.Instance == s.Instance:
			is = "this instance"
		case v.Seen:
			is = "seen from here"
		}
		lines = append(lines, "voter "+strings.TrimPrefix(plain.Text(v.Name)+" at "+plain.Text(v.Address)+": "+is, " at "))
	}
	return lines
}

func bringBack(s mortise.Status) string {
	if strings.Contains(s.Waiting, emptied) {
		return "Follow the sentence above: it names the voters that run without their directories."
	}
	if strings.Contains(s.Waiting, unreached) { // the text of Waiting is more recent than the data from gossip
		return "Bring back a majority of the voters: those that cannot be reached are named above."
	}
	var names []string
	for _, v := range unseen(s) {
		switch {
		case !v.Votes:
		case v.Name == "":
			names = append(names, v.Address)
		default:
			names = append(names, v.Name+" at "+v.Address)
		}
	}
	if len(names) == 0 {
		return "Check that the voters run and reach each other. An election takes about a second."
	}
	return "Bring back a majority of the voters. Not seen from here: " + strings.Join(names, ", ") + "."
}

// instances returns the number of member instances, without guests. It returns zero if the number
// is not known, or if the members fill more than one page.
func (s *scene) instances() int {
	if s.all.members == nil || len(s.all.members) >= maxMembers {
		return 0
	}
	names := map[string]bool{} // an instance that has lost a session is listed twice until the old session is removed
	for _, m := range s.all.members {
		if m.Tier == mortise.TierRoot {
			names[m.Instance] = true
		}
	}
	return len(names)
}

func (s *scene) voterFindings() (all []finding) {
	h := s.health()
	if h == nil || s.status.Leader == "" {
		return nil
	}
	advice := sentence(h.Advice)
	for _, d := range h.Disks {
		all = append(all, finding{ID: "disk/" + d.Instance, Level: watch,
			What: fmt.Sprintf("The disk of %s has a fault.", d.Name), Why: sentence(d.String()),
			Next: advice})
	}
	for _, m := range h.Missing {
		if slices.ContainsFunc(h.Disks, func(d mortise.DiskFault) bool {
			return d.Instance == m.Instance &&
				d.State != mortise.DiskLow
		}) {
			continue // the finding for the voter's disk already explains the problem
		}
		all = append(all, finding{ID: "voter-missing/" + m.Instance, Level: watch,
			What: fmt.Sprintf("The voter %s has been %s.", m.Name, m.Silence()), Next: advice})
	}
	if h.Due && len(h.Missing) == 0 {
		all = append(all, finding{ID: "voters-change", Level: watch,
			What: "A change of the voters is due or in flight.", Why: sentence(h.Change), Next: advice})
	}
	if len(h.CannotLose) > 0 && h.Members > 1 {
		all = append(all, finding{ID: "cannot-lose", Level: watch, What: "The group would not survive the loss of " +
			strings.Join(h.CannotLose, ", or of ") + ".", Next: advice})
	}
	if n := s.instances(); n > 0 && n < s.status.Promised {
		all = append(all, finding{
			ID: "instances-missing", Level: watch,
			What: fmt.Sprintf("Replicas says that %d instances run, and %d are members.", s.status.Promised, n),
			Next: "Start the instances that are missing, or set Replicas to the number that you mean to run, on all of them.",
		})
	}
	for _, d := range h.Differs {
		next := h.DifferStep(d)
		if problem, is := strings.CutPrefix(d, "Surplus: "); is {
			all = append(all, finding{ID: "surplus", Level: broken,
				What: sentence(strings.TrimSuffix(problem, "; "+next)), Next: sentence(next)})
			continue
		}
		all = append(all, finding{ID: "settings-differ/" + d, Level: watch, What: differing(d), Why: sentence(d),
			Next: sentence(next)})
	}
	return all
}

// differing returns the headline for a sentence of Health.Differs.
func differing(sentence string) string {
	switch setting, _, _ := strings.Cut(sentence, ": "); setting {
	case "Name":
		return "A founder is missing, and an instance runs that is no founder."
	case "Build":
		return "An instance is refused, because its build does not fit the group."
	case "State":
		return "The state of a replica differed from that of the majority."
	}
	return "A setting differs between instances."
}
