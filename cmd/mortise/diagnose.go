package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
)

// This file diagnoses a cluster from the replies of its instances. It does no I/O. If the cluster
// has a leader, the headline is the worst problem, and the next step for this problem comes first.

type diagnosis struct {
	Well    bool
	Problem string
	Why     []string
	Steps   []string // in order
}

func (d *diagnosis) why(format string, args ...any) {
	d.Why = append(d.Why, phrased(plain.Sprintf(format, args...)))
}

// step adds a step, unless it is there.
func (d *diagnosis) step(format string, args ...any) {
	if text := phrased(plain.Sprintf(format, args...)); !slices.Contains(d.Steps, text) {
		d.Steps = append(d.Steps, text)
	}
}

func diagnose(f facts) *diagnosis {
	d := &diagnosis{}
	for _, err := range f.lookups {
		d.why("%v", err)
	}
	leaders := f.leaders()
	switch {
	case len(f.answers()) == 0:
		d.noAnswer(f)
	case len(leaders) > 1:
		d.two(f, leaders)
	case len(leaders) == 1 && f.health != nil:
		d.led(f, leaders[0])
	case len(f.members()) == 0:
		d.unborn(f)
	default:
		d.headless(f)
	}
	if f.health == nil || len(leaders) != 1 { // otherwise d.led has reported the failed instances
		d.failed(f)
	}
	d.clocks(f)
	d.idle(f)
	return d
}

func (d *diagnosis) noAnswer(f facts) {
	d.Problem = "no instance answers"
	steps := map[guest.Outcome]string{
		guest.Refused: "start the instances at the addresses that refuse the connection: " +
			"their processes do not run, or Join names a wrong address or port",
		guest.Silent: "check that the machines that do not answer are up, " +
			"and that no firewall blocks the port from here",
		guest.Foreign: "give this command the secret (or certificates) and the cluster label of the instances: " +
			"they reject what it has now",
		guest.OtherVersion: "use a build of this command that matches the version of the instances",
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
		d.step("correct Join: it resolves to no address")
	}
}

func (d *diagnosis) two(f facts, leaders []guest.Report) {
	d.Problem = "two groups of this cluster have leaders and grant the same locks"
	for _, r := range leaders {
		d.why("%s belongs to group %s, which %s leads", r.Status.Name, r.Status.Group, r.Status.Leader)
	}
	d.step("stop the instances of one of the groups, preferably the smaller one, " +
		"and start them again: they join the other group")
}

func (d *diagnosis) led(f facts, by guest.Report) {
	leads := plain.Sprintf("%s leads group %s", by.Status.Leader, by.Status.Group)
	all := slices.Concat(instanceTroubles(f, by), voterTroubles(f, by), missingTroubles(f))
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(a.rank, b.rank) })
	if d.Well = len(all) == 0; d.Well {
		d.Problem = leads
		if left := f.grace(); left > 0 {
			d.Problem += ", which is in its grace: it is new, and grants locks in about " + short(left)
			d.step("wait for about %s: until then a holder of an earlier group may rely on its lock", short(left))
		}
		d.step("%s", f.health.Advice)
		return
	}
	d.Problem = all[0].what
	d.why("%s", leads)
	for _, t := range all[1:] {
		d.why("%s", t.what)
	}
	for _, r := range missingAt(f) {
		d.why("%s", r)
	}
	if f.health.Change != "" {
		d.why("voters: %s", f.health.Change)
	}
	advice := f.health.Advice
	for _, t := range all {
		if next := cmp.Or(t.next, advice); next != "" && !slices.Contains(d.Steps, next) {
			d.step("%s", next)
		}
	}
	if advice != "" && !slices.Contains(d.Steps, advice) {
		d.step("%s", advice)
	}
}

const longHeld = 30 * time.Second

// stuck reports a key that has been held for long while requests wait. The key becomes the headline
// unless there is a worse problem.
func (d *diagnosis) stuck(f facts, keys []hot) {
	for _, k := range keys {
		if !d.Well || k.Waiting == 0 || k.HeldFor < longHeld || lasts(k.KeyInfo) || !holderFate(k.Queue[0], f).byForce {
			continue
		}
		d.why("%s", d.Problem)
		has := "held"
		if k.Queue[0].Kept {
			has = "kept"
		}
		d.Well, d.Problem = false, plain.Sprintf("%s has %s %s for %s while others wait", k.Queue[0].Holder, has, k.Key,
			short(k.HeldFor))
		d.Steps = append([]string{plain.Sprintf("see what %s does under the lock; if it does not end, "+
			"stop it and then end the hold by force, as shown below", k.Queue[0].Holder)}, d.Steps...)
	}
}

func (d *diagnosis) unborn(f facts) {
	d.Problem = "no group is founded yet"
	for _, r := range f.answers() {
		d.why("%s at %s: %s", r.Status.Name, r.Addr, cmp.Or(r.Status.Waiting, "it is no member of a group yet"))
	}
	for _, r := range f.silent() {
		d.why("%s, which %s names: %s: %v", r.Addr, r.From, r.Outcome, r.Err)
	}
	d.begin(f)
}

// begin gives the steps that let a group be founded. What doctor has seen itself comes first. A
// waiting instance names what prevents it, with the correction.
func (d *diagnosis) begin(f facts) {
	var said []string
	for _, r := range f.silent() {
		switch r.Outcome {
		case guest.Foreign:
			d.step("give %s the same secret (or certificates) and Cluster as the others, and restart it", f.place(r))
		case guest.Refused:
			d.step("start the instance at %s, or correct %s, which names it", r.Addr, r.From)
		case guest.Silent:
			d.step("check that the machine of %s is up, and that no firewall blocks the mortise port", f.place(r))
		case guest.OtherVersion:
			d.step("run the same version of mortise at %s as on the others", f.place(r))
		}
	}
	for _, r := range f.answers() {
		text, waits := strings.CutPrefix(r.Status.Waiting, "founding waits: ")
		says := strconv.Quote(r.Status.Name)
		if other, its, found := strings.Cut(text, " is not ready: "); found { // the text of another instance
			says, text = other, its
		}
		if waits && !slices.Contains(said, text) && len(f.silent()) == 0 {
			said = append(said, text)
			d.step("%s waits: %s", says, text)
		}
	}
	if len(d.Steps) == 0 {
		d.step("start the instances of %s that are missing, and check that all reach each other on the mortise port; "+
			"the lines above name what is missing", foundedBy(f.answers()[0]))
	}
}

func (d *diagnosis) headless(f facts) {
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
		since = " for at least " + short(t) // since the instance that was asked noticed it
	}
	need := len(voters)/2 + 1
	for _, ill := range f.disks() {
		d.why("disk of %s: %v", ill.Name, ill)
		d.step("%s: %s", ill.Name, ill.Remedy)
	}
	d.why("group %s has %d voters and needs %d of them; %d answer: %s", view.Status.Group, len(voters), need,
		len(alive), f.list(alive))
	for _, v := range missing {
		d.why("missing: %s: %s", f.named(v), f.fate(v.Instance, v.Address))
	}
	for _, r := range f.leaders() { // the leader is slow, or its members have not noticed its loss
		d.why("%s still reports %s as the leader, which has not answered in time",
			r.Status.Name, r.Status.Leader)
	}
	if len(alive) >= need {
		d.Problem = "there is no leader" + since + ", although a majority of the voters answers"
		for _, r := range f.members() {
			d.why("%s: %s", r.Status.Name, cmp.Or(r.Status.Waiting, "reports no problem"))
		}
		d.step("check that the voters that answer reach each other, in both directions, at these addresses: %s",
			f.list(alive))
		d.step("if they do: an election takes about a second; run doctor again, and read their logs if there is still no " +
			"leader")
		return
	}
	d.Problem = plain.Sprintf("the quorum is lost%s: %d of %d voters are missing, so no lock is granted", since,
		len(missing), len(voters))
	if time.Duration(view.Answer.Leaderless) > settledAfter { // an earlier answer may be incomplete
		d.why("%s says: %s", view.Status.Name, view.Status.Waiting)
	}
	d.quorumLost(f, view, missing, need-len(alive))
}

const settledAfter = 10 * time.Second

func (d *diagnosis) quorumLost(f facts, view guest.Report, missing []mortise.Member, need int) {
	group := view.Status.Group
	all := f.list(missing)
	if !view.Answer.Durable {
		var places []string
		for _, r := range f.silent() {
			places = append(places, f.place(r))
		}
		d.step("start the instances that do not answer (%s) again, or others in their place: %s", strings.Join(places, ", "),
			"this group is in memory and its locks end with it; one TTL after the loss its instances found the next "+
				"group by themselves, as soon as all instances of "+foundedBy(view)+" are there")
		d.step("if a missing one still runs and is only cut off, repair the network: "+
			"with %d of them back this group continues", need)
		return
	}
	d.step("bring back %d of the missing voters with their directories (%s): "+
		"this group then continues with all its locks", need, all)
	d.step("only if they are lost for good: make sure that they do not run, start new instances in their places "+
		"with empty directories, then run  mortise recover %s", group)
}

func (d *diagnosis) failed(f facts) {
	for _, r := range f.answers() {
		if r.Answer.Failed != "" {
			d.why("%s at %s has failed: %s", r.Status.Name, r.Addr, r.Answer.Failed)
			d.step("restart %s", r.Status.Name)
		}
	}
}

const clocksApart = time.Second

// clocks reports wall clocks that differ by more than the round trips of the queries can explain.
func (d *diagnosis) clocks(f facts) {
	answers := f.answers()
	if len(answers) < 2 {
		return
	}
	by := func(a, b guest.Report) int { return cmp.Compare(a.Skew, b.Skew) }
	slow, fast := slices.MinFunc(answers, by), slices.MaxFunc(answers, by)
	if apart := fast.Skew - slow.Skew - (fast.Took+slow.Took)/2; apart > clocksApart {
		what := plain.Sprintf("the wall clocks of %s and %s differ by about %s: while that is more than half the grace "+
			"no group is founded, and the tokens of a later group might not be higher than those of an earlier one",
			slow.Status.Name, fast.Status.Name, short(apart))
		const next = "set the clocks of the machines"
		if d.Well { // no other problem exists, so this one becomes the headline
			d.why("%s", d.Problem)
			d.Well, d.Problem, d.Steps = false, what, append([]string{next}, d.Steps...)
			return
		}
		d.why("%s", what)
		d.step("%s", next)
	}
}

const maxIdleNoted = 5

// idle notes the locks with MaxIdle whose work has not moved for half of that time. It is no
// problem of the group, since the lock ends by itself.
func (d *diagnosis) idle(f facts) {
	noted := 0
	for _, r := range f.answers() {
		for _, h := range r.Status.Idle { // those that end first come first
			if h.Idle <= h.MaxIdle/2 || noted == maxIdleNoted {
				continue
			}
			noted++
			d.why("%s holds %s (token %d), and has not called Beat for %s: the hold ends at %s, its MaxIdle", r.Status.Name,
				h.Key, uint64(h.Token), short(h.Idle), short(h.MaxIdle))
			d.step("see where the code under such a lock hangs, in a stack dump of its process; if it works, it must call " +
				"Beat more often, or have a longer MaxIdle")
		}
	}
}
