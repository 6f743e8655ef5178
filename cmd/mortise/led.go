package main

import (
	"slices"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
)

// This file finds what is wrong in a cluster that has a leader.

type trouble struct {
	rank rank
	what string
	next string // the step to take; empty means the step that the leader advises
}

type rank int

const (
	conditionBroken rank = iota // a condition of the guarantees does not hold
	instanceFailed              // an instance cannot hold locks until it is restarted
	instanceCut                 // an instance is granted no locks
	nothingGranted              // an instance waits
	diskIll                     // a disk prevents a vote, or soon will
	founderRenamed              // an instance runs under a name that is no founder's, and a founder is missing
	buildRefused                // the leader opens no session for an instance
	stateDiffers                // the replica of an instance had another state than the majority
	voterMissing                // the loss of one more voter may end the majority
	noneToLose                  // an instance was lost earlier, and the loss of one more would end the group
	leaseInDanger
	instanceMissing // the configuration expects more instances
	nameTwice
	votersChange
	settingsDiffer
	entryUnresolved // an entry of Join leads nowhere
)

func instanceTroubles(f facts, by guest.Report) (all []trouble) {
	add := func(rank rank, next, format string, args ...any) {
		all = append(all, trouble{rank, plain.Sprintf(format, args...), next})
	}
	for _, r := range f.answers() {
		switch s := r.Status; {
		case r.Answer.Failed != "":
			add(instanceFailed, "restart "+plain.Text(s.Name), "%s at %s has failed: %s", s.Name, r.Addr,
				r.Answer.Failed)
		case s.Leader == "" || s.Group != by.Status.Group:
			add(instanceCut, plain.Sprintf("check that %s at %s and the voters reach each other, in both directions, "+
				"on the mortise port", s.Name, s.Address),
				"%s at %s knows no leader, although there is one: it does not reach %s, or is not reached by it: %s",
				s.Name, s.Address, by.Status.Leader, s.Waiting)
		case s.Waiting != "" && s.GraceFor == 0:
			add(nothingGranted, "", "%s: %s", s.Name, s.Waiting)
		case s.Lease != mortise.LeaseSafe && s.Joined:
			add(leaseInDanger, plain.Sprintf("check the network between %s and %s, and whether either is short of CPU time",
				s.Name, by.Status.Leader),
				"the lease of %s is %s: it is short of CPU time, or does not reach the leader", s.Name, s.Lease)
		}
		if s := r.Status; s.Namesake != "" {
			add(nameTwice, "stop one of the two, and start it again under a Name of its own", "%s at %s: %s", s.Name,
				s.Address, s.Namesake)
		}
	}
	return append(all, unresolved(f)...)
}

// unresolved returns one trouble for all instances that report the same entries of Join.
func unresolved(f facts) (all []trouble) {
	said := map[string][]string{}
	var order []string
	for _, r := range f.answers() {
		if text := r.Status.Unresolved; text != "" {
			if said[text] == nil {
				order = append(order, text)
			}
			said[text] = append(said[text], r.Status.Name)
		}
	}
	for _, text := range order {
		names := strings.Join(said[text], ", ")
		all = append(all, trouble{entryUnresolved, plain.Sprintf("Join of %s: %s", names, text),
			plain.Sprintf("correct Join of %s, or what it names, and restart what you changed, one at a time", names)})
	}
	return all
}

func voterTroubles(f facts, by guest.Report) (all []trouble) {
	for _, d := range f.disks() {
		all = append(all, trouble{diskIll, plain.Sprintf("the disk of %s: %v", d.Name, d),
			plain.Sprintf("%s: %s", d.Name, d.Remedy)})
	}
	for _, m := range f.health.Missing {
		if f.ill(m.Instance) {
			continue // its disk is already reported
		}
		what := plain.Sprintf("the voter %s has been %s: %s", m.Name, m.Silence(),
			f.fate(m.Instance, addressOf(by.Status.Voters, m.Instance)))
		all = append(all, trouble{voterMissing, what, ""})
	}
	if f.health.Due && f.health.Surplus == 0 && len(all) == 0 {
		all = append(all, trouble{votersChange, plain.Sprintf("a change of the voters is due or in flight: %s",
			f.health.Change), ""})
	}
	votes := 0
	for _, v := range by.Status.Voters {
		if v.Votes {
			votes++
		}
	}
	if len(f.health.CannotLose) > 0 && votes < by.Status.VotersWanted && f.health.Surplus == 0 && len(all) == 0 {
		what := plain.Sprintf("the configuration asks for %d voters, and %d of %d eligible instances %s; "+
			"the group would not survive the loss of %s", by.Status.VotersWanted, votes, f.health.Eligible,
			plural(votes, "votes", "vote"), strings.Join(f.health.CannotLose, ", or of "))
		all = append(all, trouble{noneToLose, what, ""})
	}
	for _, text := range f.health.Differs {
		t := trouble{settingsDiffer, "settings differ: " + text, f.health.DifferStep(text)}
		switch setting, what, _ := strings.Cut(text, ": "); setting {
		case "Name":
			t.rank, t.what = founderRenamed, what
		case "Build":
			t.rank, t.what = buildRefused, what
		case "Surplus":
			t.rank, t.what = conditionBroken, strings.TrimSuffix(what, "; "+t.next)
		case "State":
			t.rank, t.what = stateDiffers, what
		}
		t.what = plain.Text(t.what)
		all = append(all, t)
	}
	return all
}

func missingTroubles(f facts) (all []trouble) {
	first := f.answers()[0]
	next := "start the instances that are missing, or set Replicas to the number that you mean to run, on all of them"
	for _, r := range f.silent() {
		if r.Outcome == guest.Foreign {
			next = plain.Sprintf("give %s the secret (or certificates) and the cluster label of the others: "+
				"it runs with another one or with none", f.place(r))
		}
	}
	if n := len(f.members()); int(first.Answer.Replicas) > n {
		all = append(all, trouble{instanceMissing, plain.Sprintf("Replicas says that %d instances run, and %d answer",
			first.Answer.Replicas, n), next})
	}
	for _, name := range first.Answer.Founders {
		if slices.ContainsFunc(f.members(), func(r guest.Report) bool { return r.Status.Name == name }) ||
			slices.ContainsFunc(f.health.Differs, func(text string) bool { return strings.HasPrefix(text, "Name: ") }) {
			continue // the leader's sentence names it
		}
		all = append(all, trouble{instanceMissing, plain.Sprintf("the founder %s does not answer", name),
			plain.Sprintf("start %s again", name)})
	}
	return all
}

func missingAt(f facts) (list []string) {
	if len(missingTroubles(f)) == 0 {
		return nil
	}
	for _, r := range f.silent() {
		list = append(list, plain.Sprintf("%s: %s: %v", f.place(r), r.Outcome, r.Err))
	}
	return list
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
