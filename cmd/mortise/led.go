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

// This file says what is wrong while there is a leader: the worst is the headline, and its step is
// the first.

// trouble is one thing that is wrong.
type trouble struct {
	rank rank
	what string
	next string // "": the leader's advice is the next step
}

// rank orders troubles, the worst first.
type rank int

const (
	instanceFailed  rank = iota // an instance holds nothing until it is restarted
	instanceCut                 // an instance is granted nothing
	nothingGranted              // it waits, or the group is in its grace
	diskIll                     // it costs a vote, or soon will
	voterMissing                // one more loss may cost the majority
	noneToLose                  // the loss of one instance would end the group, since another was lost before
	leaseInDanger               // locks may be lost
	instanceMissing             // one that the configuration promises
	nameTwice
	votersChange
	settingsDiffer
)

// led: there is one leader.
func (f facts) led(d *diagnosis, by guest.Report) {
	leads := plain.Sprintf("%s leads group %s", by.Status.Leader, by.Status.Group)
	all := slices.Concat(f.instanceTroubles(by), f.voterTroubles(by), f.missingTroubles())
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(a.rank, b.rank) })
	if d.Well = len(all) == 0; d.Well {
		d.Problem = leads
		d.step("%s", f.health.Advice)
		return
	}
	d.Problem = all[0].what
	d.why("%s", leads)
	for _, t := range all[1:] {
		d.why("%s", t.what)
	}
	for _, r := range f.missingAt() {
		d.why("%s", r)
	}
	if f.health.Change != "" {
		d.why("voters: %s", f.health.Change)
	}
	for _, t := range all {
		if next := cmp.Or(t.next, f.health.Advice); next != "" && !slices.Contains(d.Steps, next) {
			d.step("%s", next)
		}
	}
	if f.health.Advice != "" && !slices.Contains(d.Steps, f.health.Advice) {
		d.step("%s", f.health.Advice)
	}
}

// instanceTroubles is what each instance says of itself.
func (f facts) instanceTroubles(by guest.Report) (all []trouble) {
	add := func(rank rank, next, format string, args ...any) {
		all = append(all, trouble{rank, plain.Sprintf(format, args...), next})
	}
	for _, r := range f.answers() {
		switch s := r.Status; {
		case r.Answer.Failed != "":
			add(instanceFailed, "restart "+plain.Text(s.Name), "%s at %s has failed: %s", s.Name, r.Addr,
				r.Answer.Failed)
		case s.Leader == "" || s.Group != by.Status.Group:
			add(instanceCut, plain.Sprintf("see whether %s at %s and the voters reach each other, both ways, at the one port", s.Name, s.Address),
				"%s at %s knows no leader, although there is one: it does not reach %s, or the other way round: %s",
				s.Name, s.Address, by.Status.Leader, s.Waiting)
		case s.Waiting != "":
			add(nothingGranted, "", "%s: %s", s.Name, s.Waiting)
		case s.Lease != mortise.LeaseSafe && s.Phase == mortise.PhaseMember:
			add(leaseInDanger, plain.Sprintf("look at the network between %s and %s, and whether either is short of CPU time", s.Name, by.Status.Leader),
				"the lease of %s is %s: it is short of time, or does not reach the leader", s.Name, s.Lease)
		}
		if s := r.Status; s.Namesake != "" {
			add(nameTwice, "stop one of the two, and start it again under a Name of its own", "%s at %s: %s", s.Name,
				s.Address, s.Namesake)
		}
	}
	return all
}

// voterTroubles is what the leader says.
func (f facts) voterTroubles(by guest.Report) (all []trouble) {
	for _, d := range f.disks() {
		all = append(all, trouble{diskIll, plain.Sprintf("the disk of %s: %v", d.Name, d.DiskFault),
			plain.Sprintf("%s: %s", d.Name, d.Remedy)})
	}
	for _, m := range f.health.Missing {
		if f.ill(m.Instance) {
			continue // it is named above, with its disk
		}
		what := plain.Sprintf("the voter %s is not heard of for %s: %s", m.Name, short(m.Silent),
			f.fate(m.Instance, addressOf(by.Status.Voters, m.Instance)))
		all = append(all, trouble{voterMissing, what, ""})
	}
	if f.health.Due && len(all) == 0 {
		all = append(all, trouble{votersChange, plain.Sprintf("a change of the voters is due or in flight: %s",
			f.health.Change), ""})
	}
	votes := 0
	for _, v := range by.Status.Voters {
		if v.Votes {
			votes++
		}
	}
	if len(f.health.CannotLose) > 0 && votes < by.Status.VotersWanted && len(all) == 0 {
		what := plain.Sprintf("of %d voters that the configuration wants %d are there, and the group would not survive the loss of %s", by.Status.VotersWanted, votes,
			strings.Join(f.health.CannotLose, ", or of "))
		all = append(all, trouble{noneToLose, what, ""})
	}
	for _, text := range f.health.Differs {
		all = append(all, trouble{settingsDiffer, plain.Sprintf("settings differ: %s", text),
			"give all instances the same configuration, if it stays so"})
	}
	return all
}

// missingTroubles says who is not there of those that the configuration promises.
func (f facts) missingTroubles() (all []trouble) {
	first := f.answers()[0]
	next := "start the instances that are missing, or set Replicas to the number that you mean to run, on all of them"
	for _, r := range f.silent() {
		if r.Outcome == guest.Foreign {
			next = plain.Sprintf("give %s the secret (or certificates) and the cluster label of the others: it runs, and has another or none", f.place(r))
		}
	}
	if n := len(f.members()); int(first.Answer.Replicas) > n {
		all = append(all, trouble{instanceMissing, plain.Sprintf("Replicas says that %d instances run, and %d answer",
			first.Answer.Replicas, n), next})
	}
	for _, name := range first.Answer.Founders {
		if !slices.ContainsFunc(f.members(), func(r guest.Report) bool { return r.Status.Name == name }) {
			all = append(all, trouble{instanceMissing, plain.Sprintf("the founder %s does not answer", name),
				plain.Sprintf("start %s again", name)})
		}
	}
	return all
}

// longHeld is how long a lock may be held while requests wait before it is worth a word: as long as
// the page takes it for one.
const longHeld = 30 * time.Second

// stuck makes keys the headline that are held for long while requests wait, if there is nothing
// worse.
func (f facts) stuck(d *diagnosis, keys []hot) {
	for _, k := range keys {
		if !d.Well || k.Waiting == 0 || k.HeldFor < longHeld || lasts(k.KeyInfo) || !holderFate(k.Queue[0], f).byForce {
			continue
		}
		d.why("%s", d.Problem)
		d.Well, d.Problem = false, plain.Sprintf("%s is held for %s while others wait, by %s", k.Key,
			short(k.HeldFor), k.Queue[0].Holder)
		d.Steps = append([]string{plain.Sprintf("look at what %s does with it; if it will not end, stop that, and then end the hold by force, as shown below", k.Queue[0].Holder)}, d.Steps...)
	}
}

// missingAt lists the addresses that do not answer, if instances are missing.
func (f facts) missingAt() (list []string) {
	if len(f.missingTroubles()) == 0 {
		return nil
	}
	for _, r := range f.silent() {
		list = append(list, plain.Sprintf("%s: %s: %v", f.place(r), r.Outcome, r.Err))
	}
	return list
}
