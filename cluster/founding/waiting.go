package founding

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// An outlook tells the user what this instance waits for and what to do.
type outlook struct {
	*assent
	inquest *inquest
	bound   []bool // which listed instances are known to be bound
	barred  string // why this instance may never take part again; empty if it may
}

// waiting tells the user what this instance waits for and what to do. It returns "" if this
// instance waits for nothing.
func (o *outlook) waiting() string {
	switch {
	case o.barred != "":
		return o.barred
	case o.settings.Solo:
		return o.unfit
	case o.settling:
		return "checking whether another process runs from a copy of this directory"
	case o.phase == Newborn:
		return o.waitingNewborn()
	case o.phase == Bound:
		return o.waitingBound()
	case !o.leader && o.durable:
		return o.waitingDurable()
	case !o.leader:
		return o.waitingMember()
	}
	return ""
}

func (o *outlook) waitingNewborn() string {
	if two := o.groups(); len(two) > 1 {
		return "two groups with leaders can be reached, " + strings.Join(two, " and ") +
			": stop one of them, they never merge"
	}
	if o.joins() {
		return o.waitingJoiner()
	}
	list, missing := o.candidates()
	_, obstacle := o.obstacle(nil)
	culprit := o.culprit()
	switch {
	case culprit != "" && o.settings.founds(o.name):
		return "founding waits: " + culprit
	case obstacle != "" && o.settings.founds(o.name):
		return "founding waits: " + obstacle
	case missing != "":
		return "founding waits: " + missing
	case list[0].instance != o.instance:
		return "founding waits for the charter of " + nameOf(list[0].name, list[0].addr)
	}
	ch := o.charterFor(list, Random{Group: 1, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
	if refusal, detail := o.judge(&ch); refusal != Accepted {
		return "founding waits: this instance would refuse its own charter: " + refusal.String() + orEmpty(": ", detail)
	}
	return ""
}

func (o *outlook) waitingJoiner() string {
	text := "this instance is not one of the Founders: it joins as soon as it meets a member of a group that has " +
		"a leader"
	var met, others []string
	for _, p := range o.places {
		who, ok := p.seen(o.now, metFor)
		if ok && !o.known(p) && who.Instance != o.instance {
			others = append(others, p.label())
		}
		if !ok || !o.known(p) || slices.Contains(met, who.Name) {
			continue
		}
		if met = append(met, who.Name); who.Phase == Newborn && who.Obstacle != "" {
			return text + "; the founder " + p.label() + " waits: " + who.Obstacle
		}
	}
	var missing []string
	for _, f := range o.settings.Founders {
		if !slices.Contains(met, f) {
			missing = append(missing, strconv.Quote(f))
		}
	}
	if len(met) == 0 && len(others) > 0 {
		return text + "; it has met none of them (" + some(missing) + "), and sees " + some(others) +
			": to let these found the group, list the Name of each (the host name by default) in Founders, and " +
			"that of this one (" +
			strconv.Quote(o.name) + ") too"
	}
	if len(missing) > 0 {
		return text + "; it has not met the founders " + some(missing) + o.absent()
	}
	return text + "; it has met all the Founders"
}

func (o *outlook) waitingBound() string {
	var open []string
	for i, l := range o.charter.List {
		if !o.bound[i] {
			open = append(open, nameOf(l.Name, l.Addr))
		}
	}
	if len(open) > 0 {
		return "group " + groupName(o.group) + " is not founded yet: " + some(open) + " has not accepted its charter" +
			o.keepNote()
	}
	return "group " + groupName(o.group) + " is not founded yet: a majority of its voters has not confirmed it" +
		o.keepNote()
}

func (o *outlook) keepNote() string {
	missing := o.unreached(o.now - reachedFor)
	if !o.durable || missing == "" {
		return ""
	}
	return "; its directory keeps the charter until all instances are in reach, but " + missing
}

func (o *outlook) waitingMember() string {
	if text := o.cutOff(); text != "" {
		return text
	}
	text := "group " + groupName(o.group) + " has no leader; " + o.prospects()
	if who := o.elsewhere(); who != nil {
		text += "; " + nameOf(who.Name, who.Addr) + " belongs to group " + groupName(who.Group) + ", which has one"
	}
	if o.joins() {
		return text + "; this instance is no founder, and joins a new group once the Founders have founded one"
	}
	return text
}

func (o *outlook) prospects() string {
	var alive, over, silent []string
	voters := 0
	for _, v := range o.newest() {
		if v.Learner {
			continue
		}
		voters++
		name := o.nameOf(v.Instance)
		if name == "" {
			name = v.Addr
		} else {
			name = nameOf(name, v.Addr)
		}
		switch {
		case o.inquest.running(v, 0):
			alive = append(alive, name)
		case o.inquest.over(v, 0):
			over = append(over, name)
		default:
			silent = append(silent, name)
		}
	}
	text := strconv.Itoa(len(alive)) + " of " + strconv.Itoa(voters) + " replicas answer"
	if len(over) > 0 {
		text += ", " + some(over) + " no longer " + plural(len(over), "exists", "exist")
	}
	if len(silent) > 0 {
		text += "; of its voters, " + some(silent) + " cannot be reached"
	}
	switch lost := o.now - o.since; {
	case o.inquest.dead(0):
		if missing := o.unreached(o.since); missing != "" {
			return text + "; a new group is founded once all instances are in reach, but " + missing
		}
		return text + "; its majority is gone, and a new group is founded once the locks have ended"
	case 2*len(alive) <= voters:
		return text + "; it goes on with its locks when a majority is in reach"
	case lost > electedWithin:
		return text + "; no leader has been elected since " + clockText(o.sinceWall) + o.orEarlier() +
			": check the network between them"
	case len(silent) > 0:
		return text + "; the others elect a leader"
	}
	return text + " and elect a leader"
}

// waitingDurable returns the Waiting text of a durable member without a leader. The text contains
// absolute times, so it changes only when something happens.
func (o *outlook) waitingDurable() string {
	if text := o.cutOff(); text != "" {
		return text
	}
	text := "group " + groupName(o.group) + " has no leader (since " + clockText(o.sinceWall) + o.orEarlier() + ")"
	var gone, anew []string
	for _, v := range o.voters {
		seen := o.lastMet(v.Instance)
		if v.Instance == o.instance || v.Learner || (seen != nil && o.now-seen.at <= reachedFor) {
			continue
		}
		if name := o.successor(v); name != "" {
			anew = append(anew, name)
			continue
		}
		when := "no answer since " + clockText(o.sinceWall) + " or earlier"
		if seen != nil && seen.at > o.since {
			when = "last answered " + clockText(seen.wall)
		}
		gone = append(gone, o.voterName(v)+" ("+when+")")
	}
	if who := o.elsewhere(); who != nil {
		return text + "; " + nameOf(who.Name, who.Addr) + " belongs to group " + groupName(who.Group) +
			", which has one: if this group is lost for good, give it up with Recover, and this instance joins that one"
	}
	switch {
	case len(anew) > 0:
		text += "; " + some(anew) + " " + plural(len(anew), "runs", "run") + " without this group's log, from a new " +
			"directory: stop " + plural(len(anew), "it and start it with its", "them and start them with their") +
			" old directory"
		if len(gone) == 0 {
			return text + "; if that is lost for good, give the group up with Recover on this instance, and the " +
				"instances that run found a new one"
		}
	case len(gone) > 0:
	case o.now-o.since > electedWithin:
		return text + "; all its voters answer, but no leader has been elected: check their disks and the network " +
			"between them"
	default:
		return text + "; all its voters answer and are electing one"
	}
	return text + "; of its voters, " + some(gone) +
		" cannot be reached: bring them back, with their directories. Nothing is granted until " +
		"then, and no state is lost (a holder keeps its lock until its lease runs out); if they are gone for " +
		"good, Recover gives the group up"
}

// connectFor is the time after which an unconnected member counts as cut off.
const connectFor = 3 * time.Second

func (o *outlook) cutOff() string {
	text := o.led()
	if text == "" {
		return ""
	}
	if o.now-o.since < connectFor {
		return "group " + groupName(o.group) + " has a leader, and this instance is connecting to it"
	}
	text = "group " + groupName(o.group) + " has a leader, which this instance does not reach, but " + text +
		": check the network between this instance and the voters"
	if o.durable && o.lost() {
		text += "; if all the voters that it knows are gone for good, empty its directory: it then joins as a new " +
			"instance"
	}
	return text
}
