package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
)

// This file says what is wrong with a cluster, from what its instances have answered. It asks
// nobody and is told everything.

// facts are what doctor has found.
type facts struct {
	reports []guest.Report
	lookups []error         // entries of Join that lead nowhere
	health  *mortise.Health // nil: there is no leader
}

// diagnosis is what doctor says.
type diagnosis struct {
	Well    bool
	Problem string   // in a sentence
	Why     []string // what it is seen by
	Steps   []string // the next safe steps, in order
}

func (d *diagnosis) why(format string, args ...any) {
	d.Why = append(d.Why, plain.Sprintf(format, args...))
}
func (d *diagnosis) step(format string, args ...any) {
	d.Steps = append(d.Steps, plain.Sprintf(format, args...))
}

// diagnose finds the worst that is wrong.
func diagnose(f facts) *diagnosis {
	d := &diagnosis{}
	for _, err := range f.lookups {
		d.why("%v", err)
	}
	leaders := f.leaders()
	switch {
	case len(f.answers()) == 0:
		f.nobody(d)
	case len(leaders) > 1:
		f.two(d, leaders)
	case len(leaders) == 1 && f.health != nil:
		f.led(d, leaders[0])
	case len(f.members()) == 0:
		f.unborn(d)
	default:
		f.headless(d)
	}
	if f.health == nil || len(leaders) != 1 { // else led has said it
		f.failed(d)
	}
	f.clocks(d)
	return d
}

func (f facts) filter(want func(guest.Report) bool) (list []guest.Report) {
	for _, r := range f.reports {
		if want(r) {
			list = append(list, r)
		}
	}
	return list
}

func (f facts) answers() []guest.Report {
	return f.filter(func(r guest.Report) bool { return r.Status != nil })
}

func (f facts) members() []guest.Report {
	return f.filter(func(r guest.Report) bool {
		return r.Status != nil && r.Status.Phase == mortise.PhaseMember && r.Answer.Failed == ""
	})
}

// leaders returns one member of every group of which some member knows a leader.
func (f facts) leaders() (list []guest.Report) {
	for _, r := range f.members() {
		known := slices.ContainsFunc(list, func(o guest.Report) bool { return o.Status.Group == r.Status.Group })
		if r.Status.Leader != "" && !known {
			list = append(list, r)
		}
	}
	return list
}

// nobody: no instance answers at all.
func (f facts) nobody(d *diagnosis) {
	d.Problem = "no instance answers"
	steps := map[guest.Outcome]string{
		guest.Refused:      "start the instances at the addresses that refuse the connection: their processes do not run, or Join names a wrong address or port",
		guest.Silent:       "see whether the machines that do not answer are up, and whether a firewall lets the port through from here",
		guest.Foreign:      "give this command the secret (or certificates) and the cluster label of the instances: with what it has they do not talk to it",
		guest.OtherVersion: "use a build of this command that fits the instances",
	}
	said := map[guest.Outcome]bool{}
	for _, r := range f.reports {
		d.why("%s: %s: %v", r.Addr, r.Outcome, r.Err)
		if !said[r.Outcome] {
			said[r.Outcome] = true
			d.step("%s", steps[r.Outcome])
		}
	}
	if len(f.reports) == 0 {
		d.step("correct Join: it leads to no address")
	}
}

// two groups have leaders.
func (f facts) two(d *diagnosis, leaders []guest.Report) {
	d.Problem = "two groups of this cluster have leaders and grant the same locks"
	for _, r := range leaders {
		d.why("%s belongs to group %s, which %s leads", r.Status.Name, r.Status.Group, r.Status.Leader)
	}
	d.step("stop the instances of one of the groups, best of the one with fewer, and start them again: they join the other")
}

// silent are the addresses that do not answer.
func (f facts) silent() []guest.Report {
	return f.filter(func(r guest.Report) bool { return r.Status == nil })
}

// place is an address with the name that others know it by.
func (f facts) place(r guest.Report) string {
	if name := names(f.reports)[r.Addr]; name != "" {
		return name + " at " + r.Addr
	}
	return r.Addr
}

// addressOf is where an instance is by a list.
func addressOf(list []mortise.Member, instance string) string {
	for _, m := range list {
		if m.Instance == instance {
			return m.Address
		}
	}
	return ""
}

// fate says what is found where an instance should be.
func (f facts) fate(instance, address string) string {
	for _, r := range f.reports {
		if r.Status != nil && r.Status.Instance == instance {
			return "it answers here, so it is the network between them that is cut"
		}
	}
	for _, r := range f.reports {
		if r.Addr != address {
			continue
		}
		switch r.Outcome {
		case guest.Answered:
			return plain.Sprintf("its process has been started anew: at %s is somebody new, %s", address, r.Status.Name)
		case guest.Refused:
			return plain.Sprintf("its process does not run: %s refuses the connection", address)
		case guest.Silent:
			return plain.Sprintf("its machine or the network to it is gone, or it is stopped: %s does not answer",
				address)
		}
		return plain.Sprintf("at %s is somebody else: %v", address, r.Err)
	}
	return "nobody knows where it is"
}

// unborn: some answer, and no group is founded.
func (f facts) unborn(d *diagnosis) {
	d.Problem = "no group is founded yet"
	for _, r := range f.answers() {
		d.why("%s at %s: %s", r.Status.Name, r.Addr, cmp.Or(r.Status.Waiting, string(r.Status.Phase)))
	}
	for _, r := range f.silent() {
		d.why("%s, which %s names: %s: %v", r.Addr, r.From, r.Outcome, r.Err)
	}
	first := f.answers()[0]
	d.step("start what is missing of %s, and see that all reach each other at the one port; the sentences above name who is awaited", foundedBy(first))
}

// headless: a group without a leader.
func (f facts) headless(d *diagnosis) {
	view := f.view()
	var voters, missing, alive []mortise.Member
	for _, v := range view.Status.Voters {
		if !v.Votes {
			continue
		}
		voters = append(voters, v)
		if slices.ContainsFunc(f.members(), func(r guest.Report) bool { return r.Status.Instance == v.Instance }) {
			alive = append(alive, v)
		} else {
			missing = append(missing, v)
		}
	}
	since := ""
	if t := time.Duration(view.Answer.Leaderless); t > 0 {
		since = " for " + short(t)
	}
	need := len(voters)/2 + 1
	for _, ill := range f.disks() {
		d.why("disk of %s: %v", ill.Name, ill.DiskFault)
		d.step("%s: %s", ill.Name, ill.Remedy)
	}
	d.why("group %s has %d voters and needs %d of them; %d answer: %s", view.Status.Group, len(voters), need,
		len(alive), f.list(alive))
	for _, v := range missing {
		d.why("missing: %s: %s", f.named(v), f.fate(v.Instance, v.Address))
	}
	for _, r := range f.leaders() { // who have not noticed yet, or who do not answer in time
		d.why("%s still takes %s for the leader, which has not said within the time how the voters stand",
			r.Status.Name, r.Status.Leader)
	}
	if len(alive) >= need {
		d.Problem = "there is no leader" + since + ", although a majority of the voters answers"
		for _, r := range f.members() {
			d.why("%s: %s", r.Status.Name, cmp.Or(r.Status.Waiting, "waits for nothing"))
		}
		d.step("see whether the voters that answer reach each other, both ways, at these addresses: %s", f.list(alive))
		d.step("if they do: an election takes a second; ask again, and look at their logs if it stays so")
		return
	}
	d.Problem = plain.Sprintf("the quorum is lost%s: %d of %d voters are missing, nothing is granted", since,
		len(missing), len(voters))
	if time.Duration(view.Answer.Leaderless) > settledAfter { // by then it has asked everybody itself
		d.why("%s says: %s", view.Status.Name, view.Status.Waiting)
	}
	f.quorumLost(d, view, missing, need-len(alive))
}

// settledAfter is after how long without a leader an instance can say who is missing, by name.
const settledAfter = 10 * time.Second

// quorumLost says what to do about it.
func (f facts) quorumLost(d *diagnosis, view guest.Report, missing []mortise.Member, need int) {
	group := view.Status.Group
	all := f.list(missing)
	if !view.Answer.Durable {
		var places []string
		for _, r := range f.silent() {
			places = append(places, f.place(r))
		}
		d.step("start what does not answer (%s) again, or others in its place: %s", strings.Join(places, ", "),
			"the group is in memory, its locks end with it, and it founds the next one by itself one TTL after the loss, as soon as all that "+foundedBy(view)+" asks for are there")
		d.step("where a missing one still runs and is only cut off, mend the network: with %d of them back this group goes on", need)
		return
	}
	d.step("bring back %d of the missing voters with their directories (%s): this group goes on then, with all its locks", need, all)
	d.step("only if they are lost for good: make sure that they do not run, start new instances in their places with empty directories, then  mortise recover %s", group)
}

// view is the member that knows most of its group: the voter with the highest term, or any.
func (f facts) view() guest.Report {
	members := f.members()
	return slices.MaxFunc(members, func(a, b guest.Report) int {
		return cmp.Or(cmp.Compare(a.Status.Term, b.Status.Term),
			cmp.Compare(len(a.Status.Voters), len(b.Status.Voters)))
	})
}

// named is a member's name and address, or what there is of them.
func (f facts) named(m mortise.Member) string {
	name := cmp.Or(m.Name, names(f.reports)[m.Address], "instance "+m.Instance)
	return name + " at " + m.Address
}

func (f facts) list(members []mortise.Member) string {
	var texts []string
	for _, m := range members {
		texts = append(texts, f.named(m))
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// failed adds instances that have stopped to be one in a process that still runs.
func (f facts) failed(d *diagnosis) {
	for _, r := range f.answers() {
		if r.Answer.Failed != "" {
			d.why("%s at %s has failed: %s", r.Status.Name, r.Addr, r.Answer.Failed)
			d.step("restart %s", r.Status.Name)
		}
	}
}

// clocksApart is how much wall clocks may differ before it is worth a word: a fifth of what they
// may by default.
const clocksApart = time.Second

// clocks adds wall clocks that differ, as far as it can be known over the network.
func (f facts) clocks(d *diagnosis) {
	answers := f.answers()
	if len(answers) < 2 {
		return
	}
	by := func(a, b guest.Report) int { return cmp.Compare(a.Skew, b.Skew) }
	slow, fast := slices.MinFunc(answers, by), slices.MaxFunc(answers, by)
	if apart := fast.Skew - slow.Skew - (fast.Took+slow.Took)/2; apart > clocksApart {
		what := plain.Sprintf("the wall clocks of %s and %s differ by about %s: no group is founded while that is more than half the grace, and tokens of a later group may not be above those of an earlier one", slow.Status.Name, fast.Status.Name, short(apart))
		const next = "set the clocks of the machines"
		if d.Well { // it is the worst, and its step is the first
			d.why("%s", d.Problem)
			d.Well, d.Problem, d.Steps = false, what, append([]string{next}, d.Steps...)
			return
		}
		d.why("%s", what)
		d.step("%s", next)
	}
}
