package founding

import (
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// A sight is a copy of what an instance decides by: the instance itself, its group, and the answers
// of other instances. A sight serves one decision, and changes no part of the core.
type sight struct {
	self
	bond
	leading
	acquaintances
	now      time.Duration
	wall     int64
	join     []Entry
	places   []*place
	durable  bool
	settling bool
	searches bool // a restarted voter still searches for other voters
}

func (s *sight) needed() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.settings.Founders, s.rulesOf.Founders))))
}

// nextSettings returns the settings of the next incarnation. They include the founders of the
// present group; otherwise the next incarnation might found a group alone.
func (s *sight) nextSettings() Settings {
	if len(s.rulesOf.Founders) > 0 && !s.settings.Solo && s.phase != Newborn {
		return s.settings.withFounders(s.needed())
	}
	return s.settings
}

func (s *sight) nameOf(instance nodeid.ID) string {
	if instance == s.instance {
		return s.name
	}
	if s.charter != nil {
		if at := s.charter.listed(instance); at >= 0 {
			return s.charter.List[at].Name
		}
	}
	return s.metAs(instance)
}

func (s *sight) voterName(v Voter) string {
	return nameOf(s.nameOf(v.Instance), v.Addr)
}

// replaces reports whether an instance with this name proves that the replica of the given instance
// has ended. Only one process runs under each founder's name.
func (s *sight) replaces(name string, instance nodeid.ID) bool {
	return name != "" && slices.Contains(s.needed(), name) && name == s.nameOf(instance)
}

func (s *sight) unguided() time.Duration { return s.now - max(s.guided, s.since) }

// lost reports whether all known voters may have been replaced, because they have been silent for
// so long.
func (s *sight) lost() bool {
	return s.unguided() > max(s.settings.SessionTTL, s.rulesOf.SessionTTL)
}

func (s *sight) believes(from nodeid.ID) bool {
	return s.votes(from) || !from.IsZero() && from == s.guide
}

func (s *sight) known(p *place) bool {
	return p.last.outcome == Answered && len(s.settings.Founders) > 0 && s.settings.founds(p.last.info.Name)
}

// founders returns the addresses at which a founder was last met.
func (s *sight) founders() []string {
	var addrs []string
	for _, p := range s.places {
		if s.known(p) {
			addrs = append(addrs, p.addr)
		}
	}
	return addrs
}

// bystander reports whether founding may ignore an answering instance. Such an instance is no
// founder, and it is a newborn or a member of a group with the same founders.
func (s *sight) bystander(who *InstanceInfo) bool {
	if s.settings.founds(who.Name) || who.Settings.Solo || who.Phase == Bound {
		return false
	}
	return who.Phase == Newborn || slices.Equal(who.Settings.Founders, s.settings.Founders) &&
		who.Settings.Replicas == 0
}

func (s *sight) silentFounders(ch *Charter) []string {
	var missing []string
	if ch == nil {
		for _, name := range s.absentFounders(freshFor) {
			missing = append(missing, strconv.Quote(name))
		}
		return missing
	}
	for _, l := range ch.List {
		if l.Instance == s.instance {
			continue
		}
		at, found := find(s.places, l.Addr)
		if found {
			if who, ok := s.places[at].seen(s.now, freshFor); ok && who.Instance == l.Instance {
				continue
			}
		}
		missing = append(missing, nameOf(l.Name, l.Addr))
	}
	return missing
}

func (s *sight) absentFounders(limit time.Duration) []string {
	var here, missing []string
	for _, p := range s.places {
		if who, ok := p.seen(s.now, limit); ok {
			here = append(here, who.Name)
		}
	}
	for _, f := range s.needed() {
		if f != s.name && !slices.Contains(here, f) {
			missing = append(missing, f)
		}
	}
	return missing
}

func (s *sight) silentJoin() []*place {
	if len(s.settings.Founders) != 1 || s.settings.Founders[0] != s.name {
		return nil
	}
	return s.mute()
}

func (s *sight) mute() (list []*place) {
	for _, p := range s.places {
		if p.entry != "" && p.mute {
			list = append(list, p)
		}
	}
	return list
}

func (s *sight) unanswered() (list []*place) {
	for _, p := range s.places {
		if p.entry != "" && !p.last.fresh(s.now, freshFor) {
			list = append(list, p)
		}
	}
	return list
}

func (s *sight) sampled() bool {
	asked, others := 0, 0
	for _, p := range s.places {
		if p.entry == "" || s.known(p) {
			continue
		}
		others++
		if p.tried && s.now-p.ended <= sampledFor {
			asked++
		}
	}
	return asked >= min(others, maxSample)
}

// strays returns the places whose instance calls itself by another address, at which it was not
// met.
func (s *sight) strays() (list []*place) {
	for _, p := range s.places {
		who, ok := p.seen(s.now, freshFor)
		if !ok || who.Phase != Newborn || who.Settings.Solo || who.Addr == "" || who.Addr == p.addr ||
			who.Instance == s.instance || !s.settings.founds(who.Name) {
			continue
		}
		at, found := find(s.places, who.Addr)
		if found {
			if there, ok := s.places[at].seen(s.now, sampledFor); ok && there.Instance == who.Instance {
				continue
			}
		}
		list = append(list, p)
	}
	return list
}

func (s *sight) unsettled() bool {
	for _, e := range s.join {
		if e.unknown(s.now) {
			return true
		}
	}
	heard, named := 0, 0
	for _, p := range s.places {
		silent := p.last.outcome == Silent
		if silent && (s.everyone() || p.near) {
			return true
		}
		if p.entry != "" {
			named++
			if !silent {
				heard++
			}
		}
	}
	return heard < min(named, maxSettle)
}

func (s *sight) introduction() question {
	q := question{Group: s.group, Bound: s.phase != Newborn, Resuming: s.settling, Founds: s.settings.founds(s.name)}
	if s.durable {
		q.Life, q.Boot = s.life, s.boot
	}
	return q
}

// unreached describes which needed instances have not answered a question that was asked after
// the given time. It returns "" if all have answered.
func (s *sight) unreached(after time.Duration) string {
	reached := []nodeid.ID{s.instance}
	names := []string{s.name}
	for _, p := range s.places {
		who, ok := p.seenSince(after, s.now)
		if ok && !slices.Contains(reached, who.Instance) {
			reached, names = append(reached, who.Instance), append(names, who.Name)
		}
	}
	for _, f := range s.needed() {
		if !slices.Contains(names, f) {
			return "founder " + strconv.Quote(f) + " is missing"
		}
	}
	if len(s.settings.Founders) == 0 && len(reached) < s.settings.Replicas {
		return "only " + count(len(reached), s.settings.Replicas) + " can be reached"
	}
	return ""
}

// open returns the answer of a member of a group that has a leader, which a newborn joins, or nil.
// If two such groups are in reach, it returns nil: an operator must stop one of them.
func (s *sight) open() *InstanceInfo {
	var with *InstanceInfo
	for _, p := range s.places {
		who, ok := p.seen(s.now, freshFor)
		if !ok || who.Phase != Member || !who.Leader || who.Settings.Solo || len(who.Voters) == 0 {
			continue
		}
		if with != nil && with.Group != who.Group {
			return nil
		}
		if with == nil || who.At > with.At {
			with = who
		}
	}
	return with
}

func (s *sight) groups() []string {
	var names []string
	for _, p := range s.places {
		who, ok := p.seen(s.now, freshFor)
		if !ok || who.Phase != Member || !who.Leader || who.Settings.Solo {
			continue
		}
		if name := groupName(who.Group); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (s *sight) elsewhere() *InstanceInfo {
	for _, p := range s.places {
		if who, ok := p.seen(s.now, reachedFor); ok && who.Leader && who.Phase == Member && who.Group != s.group &&
			!who.Settings.Solo {
			return who
		}
	}
	return nil
}

func (s *sight) led() string {
	if s.leader {
		return "this instance knows its leader"
	}
	for _, p := range s.places {
		if who, ok := p.seen(s.now, reachedFor); ok && who.Leader && who.Group == s.group && !who.Settings.Solo {
			return p.label() + " knows its leader"
		}
	}
	return ""
}

// leaders reports whether a recent answer shows a leader of another group (other) or of this group
// (own). It uses only answers to questions that were sent after the given time.
func (s *sight) leaders(after time.Duration) (other, own bool) {
	for _, p := range s.places {
		who, ok := p.seenSince(after, s.now)
		if !ok || !who.Leader || who.Settings.Solo {
			continue
		}
		own = own || who.Group == s.group
		other = other || who.Group != s.group && who.Phase == Member
	}
	return other, own
}

// superseded returns the report that operators have given up the group, or "". The report comes
// from an instance of the replacing group, because the old voters have new IDs by then. The
// conditions prevent a holder of the secret from ending the group one directory at a time.
func (s *sight) superseded() string {
	if s.leader || !s.durable || s.settings.Solo || !s.lost() {
		return ""
	}
	for _, p := range s.places {
		who, ok := p.seen(s.now, reachedFor)
		named := p.entry != ""
		if ok && named && who.Phase == Member && who.Leader && !who.Settings.Solo &&
			slices.Contains(who.Supersedes, s.group) {
			return "group " + groupName(s.group) + " was given up, and " + p.label() + " belongs to group " +
				groupName(who.Group) +
				", which has taken its place"
		}
	}
	return ""
}

// distinct reports whether all instances that answered after the given time were alive
// simultaneously. Otherwise two of them may be the same process before and after a restart.
func (s *sight) distinct(after time.Duration) bool {
	newest, oldest := time.Duration(0), s.now
	for _, p := range s.places {
		if _, ok := p.seenSince(after, s.now); ok {
			newest, oldest = max(newest, p.last.first), min(oldest, p.last.asked)
		}
	}
	return newest <= oldest
}

// The method later lists the configurations that members of this group report as applied, if they
// are newer than the known one. A false report can only make this instance stay in its group.
func (s *sight) later(after time.Duration) (list []Configuration) {
	for _, p := range s.places {
		who, ok := p.seenSince(after, s.now)
		if !ok || who.Phase != Member || who.Group != s.group || who.Standing == nil || who.Standing.Raft == 0 {
			continue
		}
		if g := who.Standing.Applied; g.At > s.at && len(list) < maxVoters {
			list = append(list, g)
		}
	}
	return list
}

func (s *sight) answering(v Voter, after time.Duration) *InstanceInfo {
	for _, p := range s.places {
		who, ok := p.seenSince(after, s.now)
		if !ok || who.Instance != v.Instance || who.Phase == Newborn {
			continue
		}
		if who.Standing == nil || who.Standing.Raft == v.Raft {
			return who
		}
	}
	return nil
}

// successor returns the label of a newborn that answers at the address or under the name of a
// voter, or "". The voter has lost its directory then.
func (s *sight) successor(v Voter) string {
	for _, p := range s.places {
		who, ok := p.seen(s.now, reachedFor)
		if ok && who.Phase == Newborn && who.Instance != v.Instance &&
			(p.addr == v.Addr || who.Name != "" && who.Name == s.nameOf(v.Instance)) {
			return p.label()
		}
	}
	return ""
}
