package founding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// A roll lists the instances that a charter of this instance would name (rule 2). It explains which
// instance is missing or has a wrong setting.
type roll struct {
	*sight
	floor  int64
	gaveUp []uint64
}

type candidate struct {
	instance   nodeid.ID
	name, addr string
	rules      uint32
	life       uint64
	wall       int64
	obstacle   string
	settings   Settings
	floor      int64
	gaveUp     []uint64
}

// alone returns the charter of a group of this instance alone. The grace is zero, because no other
// instance can ever have been in such a group.
func (r *roll) alone(random Random) Charter {
	return Charter{
		Group: random.Group, FoundedUnixMS: max(r.wall, above(r.floor)), Settings: r.settings.alone(), Rules: r.rules,
		List:   []Listed{{Instance: r.instance, Name: r.name, Addr: r.addr}},
		Voters: []Voter{{Raft: random.Raft[0], Instance: r.instance, Addr: r.addr, Life: r.life}},
	}
}

// candidates returns the instances that a charter of this instance would list, in ascending order
// of ID. The text says what prevents them from founding a group. It is empty if nothing does.
func (r *roll) candidates() ([]candidate, string) {
	list := r.present()
	return list, r.missing(list)
}

func (r *roll) present() []candidate {
	var list []candidate
	if r.settings.founds(r.name) {
		list = append(list, candidate{
			instance: r.instance, name: r.name, addr: r.addr, rules: r.rules, life: r.life, wall: r.wall,
			settings: r.settings,
			floor:    r.floor, gaveUp: sorted(r.gaveUp),
		})
	}
	for _, p := range r.places {
		who, ok := p.seen(r.now, freshFor)
		if !ok || who.Phase != Newborn || who.Settings.Solo || !r.settings.founds(who.Name) || who.Addr != p.addr {
			continue
		}
		if slices.ContainsFunc(list, func(l candidate) bool { return l.instance == who.Instance }) {
			continue
		}
		list = append(list, candidate{
			instance: who.Instance, name: who.Name, addr: who.Addr, rules: who.Rules, settings: who.Settings,
			obstacle: who.Obstacle,
			life:     max(who.Life, 1), wall: who.WallUnixMS + (r.now - p.last.got).Milliseconds(), floor: who.FloorUnixMS,
			gaveUp: who.Supersedes,
		})
	}
	slices.SortFunc(list, func(a, b candidate) int { return nodeid.Compare(a.instance, b.instance) })
	return list
}

func (r *roll) missing(list []candidate) string {
	if !r.settings.founds(r.name) {
		return r.founderMissing(list)
	}
	if text := r.culprit(); text != "" {
		return text
	}
	if len(r.settings.Founders) > 0 {
		if text := r.founderMissing(list); text != "" {
			return text
		}
	} else if len(list) < r.settings.Replicas {
		return r.replicaMissing(list)
	}
	latest := slices.MaxFunc(list, func(a, b candidate) int { return cmp.Compare(a.wall, b.wall) })
	for _, l := range list {
		if apart := time.Duration(latest.wall-l.wall) * time.Millisecond; apart > r.settings.slack() {
			return "the clock of " + nameOf(l.name, l.addr) + " is " + apart.String() + " behind that of " +
				nameOf(latest.name, latest.addr) + ": correct them"
		}
		if l.obstacle != "" {
			return nameOf(l.name, l.addr) + " is not ready: " + l.obstacle
		}
	}
	return r.tooHigh(list)
}

func above(floor int64) int64 {
	if floor == 0 {
		return 0
	}
	return min(floor+1, maxWall)
}

// tooHigh returns why the founding time would be refused, or "". The time must be higher than
// every token that a listed instance has received, but not too far ahead of the clock of any of
// them.
func (r *roll) tooHigh(list []candidate) string {
	highest := slices.MaxFunc(list, func(a, b candidate) int { return cmp.Compare(a.floor, b.floor) })
	for _, l := range list {
		apart := time.Duration(above(highest.floor)-l.wall) * time.Millisecond
		if apart > r.settings.slack() {
			return nameOf(highest.name, highest.addr) +
				" has seen tokens of an earlier group from as late as " + clockText(highest.floor) +
				", and the clock of " + nameOf(l.name, l.addr) + " is " + apart.String() +
				" behind that: set the clocks right, or wait until then"
		}
	}
	return ""
}

func (r *roll) charterFor(list []candidate, random Random) Charter {
	listed, voters, founded, rules, supersedes := []Listed(nil), []Voter(nil), r.wall, r.rules, []uint64(nil)
	for _, l := range list {
		listed = append(listed, Listed{Instance: l.instance, Name: l.name, Addr: l.addr})
		founded = max(founded, l.wall, above(l.floor))
		rules = min(rules, l.rules)
		supersedes = union(supersedes, l.gaveUp)
	}
	for i := range min(r.settings.voterCount(len(list)), len(random.Raft)) {
		l := list[i]
		voters = append(voters, Voter{Raft: random.Raft[i], Instance: l.instance, Addr: l.addr, Life: l.life})
	}
	return Charter{
		Group: random.Group, FoundedUnixMS: founded, Settings: r.settings, Rules: rules, List: listed, Voters: voters,
		Supersedes: supersedes,
	}
}

// silence names the addresses that do not answer, and what to do. It gives only one reason, because
// instances with the same configuration have the same reason.
func (r *roll) silence(places []*place) string {
	var barred, silent []string
	var last *place
	why := ""
	for _, p := range places {
		if p.why != "" {
			barred, why = append(barred, p.label()), cmp.Or(why, p.why)
			continue
		}
		silent, last = append(silent, p.label()), p
	}
	text := ""
	if len(barred) > 0 {
		text = some(barred) + " cannot be asked: " + why
	}
	switch {
	case len(silent) == 0:
		return text
	case text != "":
		text += "; "
	}
	text += "no answer from " + some(silent)
	founder := " and, if it is a founder, out of Founders"
	switch {
	case len(silent) > 1:
		text += ", which Join leads to. If these machines are gone, take them out of Join, or out of the records " +
			"of its names"
		founder = " and, if they are founders, out of Founders"
	case last.entry == JoinFunc:
		text += ", which it returns. If that machine is gone, it must no longer return the address"
	case strings.HasPrefix(last.entry, "file://"):
		text += ", which that file lists. If that machine is gone, take the address out of the file"
	case last.entry != "" && last.entry != last.addr:
		text += ", an address of a name in Join. If that machine is gone, take the address out of the name's " +
			"records, or the name out of Join"
	default:
		text += ", which Join names. If that machine is gone, take it out of Join"
	}
	if len(r.settings.Founders) > 0 {
		return text + founder
	}
	list, _ := r.candidates()
	if len(list) > 1 && len(list) == r.settings.Replicas-1 {
		return text + ", or start with Replicas: " + strconv.Itoa(r.settings.Replicas-1)
	}
	return text
}

func (r *roll) muted() string { return orEmpty("; ", r.silence(r.mute())) }

func (r *roll) replicaMissing(list []candidate) string {
	return count(len(list), r.settings.Replicas) + " are here (" + some(names(list)) + ")" +
		cmp.Or(r.absent(), ": start the others; each needs the same Replicas, and Join must lead to it")
}

func (r *roll) absent() string {
	var refused, foreign []string
	why, met := "", false
	for _, p := range r.places {
		if who, ok := p.seen(r.now, freshFor); ok && who.Instance != r.instance {
			met = true
		}
		switch {
		case p.entry == "" || !p.last.fresh(r.now, freshFor):
		case p.last.outcome == Refused:
			refused = append(refused, p.label())
		case p.last.outcome == Foreign:
			foreign = append(foreign, p.label())
			if why == "" && p.last.why != "" {
				why = " (" + p.last.why + ")"
			}
		}
	}
	text := ""
	if len(refused) > 0 {
		text += "; nothing listens at " + some(refused) + ": start the " +
			plural(len(refused), "instance", "instances") + " there, or correct Join"
	}
	if len(foreign) > 0 {
		text += "; another cluster or another program listens at " + some(foreign) + why
		if len(foreign) > 1 && !met {
			text += ": if those belong together, correct the secret and Cluster of this instance"
		}
	}
	return text
}

func (r *roll) founderMissing(list []candidate) string {
	here := names(list)
	var missing []string
	for _, f := range r.settings.Founders {
		if !slices.Contains(here, f) {
			missing = append(missing, strconv.Quote(f))
		}
	}
	return r.withoutFounders(missing)
}

func (r *roll) withoutFounders(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return "missing founders: " + some(missing) + cmp.Or(r.unlisted()+r.absent()+r.muted(), ": start them")
}

// sameName returns a sentence about two listed instances that have the same name, or "".
func sameName(list []candidate) string {
	for i, l := range list {
		before := slices.IndexFunc(list[:i], func(o candidate) bool { return o.name == l.name })
		if before >= 0 {
			return "the instances at " + list[before].addr + " and " + l.addr + " are both called " +
				strconv.Quote(l.name) +
				": give each instance a Name of its own"
		}
	}
	return ""
}

func names(list []candidate) []string {
	out := make([]string, 0, len(list))
	for _, l := range list {
		out = append(out, l.name)
	}
	return out
}

// culprit names an instance that answers and has a wrong setting, with the correction. It returns
// "" if there is none. Because of such a setting this instance would report others as missing, so
// the culprit comes before them.
func (r *roll) culprit() string {
	list := r.present()
	if text := sameName(list); text != "" {
		return text + r.unused(list)
	}
	if text := r.misplaced(); text != "" {
		return text
	}
	return r.unequal(list)
}

// unequal names the instance whose settings differ from those of most newborns in reach, which may
// be this instance. Newborns that are no founders count too, because this instance may have the
// wrong list. If there are not more on one side, nothing shows which value is wrong.
func (r *roll) unequal(list []candidate) string {
	at := slices.IndexFunc(list, func(l candidate) bool { return r.settings.unequal(l.settings) != "" })
	if at < 0 {
		return ""
	}
	all := r.newborns()
	for _, field := range comparedFields() {
		for _, most := range all {
			var alike []string
			var odd *candidate
			for i, o := range all {
				switch {
				case !o.settings.unlike(most.settings, field):
					alike = append(alike, nameOf(o.name, o.addr))
				case odd == nil && (o.instance == r.instance || r.settings.founds(o.name)):
					odd = &all[i]
				}
			}
			if 2*len(alike) > len(all) && odd != nil {
				return nameOf(odd.name, odd.addr) + " has another " + field + " (" + odd.settings.value(field) + ") than " +
					some(alike) + " (" + most.settings.value(field) + "): make them equal on all"
			}
		}
	}
	which, own, other := r.settings.difference(list[at].settings)
	return nameOf(list[at].name, list[at].addr) + " and this instance have different " + which + " (" + other + " and " +
		own + "): make them equal on all"
}

// newborns returns this instance and the newborns that answer at their own addresses.
func (r *roll) newborns() []candidate {
	all := []candidate{{instance: r.instance, name: r.name, addr: r.addr, settings: r.settings}}
	for _, p := range r.places {
		who, ok := p.seen(r.now, freshFor)
		if ok && who.Phase == Newborn && !who.Settings.Solo && who.Addr == p.addr && who.Instance != r.instance {
			all = append(all, candidate{instance: who.Instance, name: who.Name, addr: who.Addr, settings: who.Settings})
		}
	}
	return all
}

// unused names the founders under whose names no listed instance runs.
func (r *roll) unused(list []candidate) string {
	var free []string
	here := names(list)
	for _, f := range r.settings.Founders {
		if !slices.Contains(here, f) {
			free = append(free, strconv.Quote(f))
		}
	}
	if len(free) == 0 {
		return ""
	}
	return "; no instance is called " + some(free)
}

// misplaced names an instance whose own address leads to another place, or returns "".
func (r *roll) misplaced() string {
	for _, p := range r.strays() {
		who := &p.last.info
		says := strconv.Quote(who.Name) + " calls itself " + who.Addr + ", "
		step := ": correct its Advertise (it answers at " + p.addr + ")"
		if who.Addr == r.addr {
			return says + "the address of " + strconv.Quote(r.name) + step
		}
		at, found := find(r.places, who.Addr)
		if !found || !r.places[at].tried {
			continue
		}
		// An outcome tells more than a later question that was not sent, because a dial had just failed.
		switch there := r.places[at]; {
		case !there.last.fresh(r.now, sampledFor):
			if there.mute {
				return says + "where no instance answers" + step
			}
		case there.last.outcome == Refused:
			return says + "where nothing listens" + step
		case there.last.outcome == Foreign:
			return says + "where another cluster or another program listens" + step
		case there.last.outcome == Answered:
			return says + "where " + strconv.Quote(there.last.info.Name) + " listens" + step
		}
	}
	return ""
}

// unlisted names newborn instances at Join addresses that are not among the Founders. One of them
// may be a missing founder under another name.
func (r *roll) unlisted() string {
	var list []string
	for _, p := range r.places {
		who, ok := p.seen(r.now, metFor)
		if ok && p.entry != "" && who.Phase == Newborn && !who.Settings.Solo && !r.settings.founds(who.Name) &&
			!slices.Contains(list, p.label()) {
			list = append(list, p.label())
		}
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "; " + list[0] + " runs and is not one of the Founders: if it should be, correct its Name, or Founders " +
			"on all instances"
	}
	return "; " + some(list) + " run and are not among the Founders: if one of them should be, correct its Name, or " +
		"Founders on all instances"
}
