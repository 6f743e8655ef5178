package founding

import (
	"slices"
	"time"
)

// An assent applies rule 3: it says whether this instance accepts a charter.
type assent struct {
	*roll
	refused []uint64 // charters that this incarnation has refused
	unfit   string   // why the directory cannot be written; empty if it can
}

// propose returns the charter that this instance proposes now (rule 2).
func (a *assent) propose(random Random) (ch Charter, ok bool) {
	if !a.settings.founds(a.name) {
		return Charter{}, false
	}
	list, missing := a.candidates()
	if missing != "" || list[0].instance != a.instance {
		return Charter{}, false // rule 2: the newborn with the lowest ID proposes
	}
	if _, obstacle := a.obstacle(nil); obstacle != "" {
		return Charter{}, false
	}
	ch = a.charterFor(list, random)
	refusal, _ := a.judge(&ch)
	return ch, refusal == Accepted
}

func (a *assent) judge(ch *Charter) (Refusal, string) {
	if flaw := ch.malformed(); flaw != "" {
		return RefusedMalformed, flaw
	}
	if a.settings.Solo && len(ch.List) > 1 {
		return RefusedSolo, ""
	}
	if slices.Contains(a.refused, ch.Group) {
		return RefusedRepeated, ""
	}
	if a.phase != Newborn {
		return RefusedPhase, "it is " + a.phase.String()
	}
	at := ch.listed(a.instance)
	if at < 0 || ch.List[at].Name != a.name || ch.List[at].Addr != a.addr {
		return RefusedUnlisted, ""
	}
	if which, _, _ := a.settings.difference(ch.Settings.normal()); which != "" {
		return RefusedSettings, which
	}
	if missing := ch.complete(a.settings); missing != "" {
		return RefusedIncomplete, missing
	}
	if ch.Rules > a.rules || ch.Rules == 0 {
		return RefusedRules, ""
	}
	if apart := time.Duration(ch.FoundedUnixMS-a.wall) * time.Millisecond; apart.Abs() > a.settings.slack() {
		return RefusedClock, "they are " + apart.Abs().String() + " apart"
	}
	if ch.FoundedUnixMS <= a.floor {
		return RefusedClock, "tokens from as late as " + clockText(a.floor) +
			" were seen here, and the founding time is not later"
	}
	return a.obstacle(ch)
}

// obstacle returns why this instance cannot accept ch now, or Accepted. A nil ch means any charter.
func (a *assent) obstacle(ch *Charter) (Refusal, string) {
	if a.unfit != "" {
		return RefusedDirectory, a.unfit
	}
	if a.settings.Solo {
		return Accepted, ""
	}
	for _, p := range a.places {
		who, ok := p.seen(a.now, freshFor)
		if ok && who.Leader && !who.Settings.Solo && (ch == nil || who.Group != ch.Group) {
			return RefusedGroup, p.label() + " belongs to group " + groupName(who.Group) + ", which has a leader"
		}
		if ok && !who.Settings.Solo {
			if text := a.claim(p, who, ch); text != "" {
				return RefusedClaim, text
			}
		}
	}
	for _, e := range a.join {
		if e.unknown(a.now) {
			return RefusedSilence, e.Unresolved()
		}
	}
	if !a.everyone() {
		return a.founding(ch)
	}
	for _, p := range a.places {
		if p.entry == "" {
			continue
		}
		if refusal, detail := a.permits(p, ch); refusal != Accepted {
			return refusal, detail
		}
	}
	return Accepted, ""
}

func (a *assent) claim(p *place, who *InstanceInfo, ch *Charter) string {
	switch {
	case !who.Durable || who.Phase == Newborn || (ch != nil && who.Group == ch.Group):
		return ""
	case who.Phase == Bound:
		return p.label() + " is bound to another attempt to found a group, until all instances are in reach"
	}
	if slices.Contains(a.gaveUp, who.Group) {
		return p.label() + " keeps group " + groupName(who.Group) +
			", which was given up here, in its directory: give it up there too, with " +
			"Recover, or stop that instance"
	}
	return p.label() + " keeps in its directory group " + groupName(who.Group) +
		", which has no leader: bring back its voters, with their " +
		"directories; if those are lost, give the group up with Recover on all instances of it that are left"
}

// founding returns why a founder cannot accept ch, or Accepted. A nil ch means any charter.
func (a *assent) founding(ch *Charter) (Refusal, string) {
	for _, p := range a.places {
		who, ok := p.seen(a.now, freshFor)
		if !ok || p.entry == "" && !a.settings.founds(who.Name) || a.bystander(who) {
			continue
		}
		if refusal, detail := a.stranger(p, who, ch); refusal != Accepted {
			return refusal, detail
		}
	}
	switch missing := a.silentFounders(ch); {
	case len(missing) > 0 && ch == nil:
		return RefusedSilence, a.withoutFounders(missing)
	case len(missing) > 0:
		return RefusedSilence, "no answer from " + some(missing) + a.absent() + a.muted()
	}
	if list := a.silentJoin(); len(list) > 0 {
		return RefusedSilence, a.silence(list)
	}
	if !a.sampled() {
		return RefusedSilence, "it is still asking other addresses from Join for a running group"
	}
	return Accepted, ""
}

func (a *assent) permits(p *place, ch *Charter) (Refusal, string) {
	if !p.last.fresh(a.now, freshFor) {
		return RefusedSilence, a.silence(a.unanswered())
	}
	if p.last.outcome != Answered {
		// the port is closed, or the program there is no instance of this cluster
		return Accepted, ""
	}
	return a.stranger(p, &p.last.info, ch)
}

func (a *assent) stranger(p *place, who *InstanceInfo, ch *Charter) (Refusal, string) {
	switch {
	case who.Instance == a.instance:
		return Accepted, ""
	case who.Settings.Solo:
		return RefusedStranger, p.label() + " runs alone, without Join: set Join on all instances"
	case who.Phase == Member:
		return RefusedStranger, p.label() + " still belongs to group " + groupName(who.Group) + ", which has no leader"
	case who.Phase == Bound && (ch == nil || who.Group != ch.Group):
		return RefusedStranger, p.label() + " is bound to another attempt to found a group"
	case ch == nil:
		return Accepted, ""
	case ch.listed(who.Instance) < 0 && a.settings.founds(who.Name):
		return RefusedStranger, p.label() + " is not on the list"
	}
	return Accepted, ""
}
