package main

import (
	"errors"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// apart returns the same facts with other names, IDs and addresses, so that no two fields of an
// instance have the same value: the instance x is called Nx, has the ID Ix and the zone Zx.
func apart(f facts) facts {
	member := func(m mortise.Member) mortise.Member {
		if m.Name != "" {
			m.Name = "N" + m.Name
		}
		if m.Instance != "" {
			m.Zone, m.Version, m.For, m.Session = "Z"+m.Instance, "V"+m.Instance, "F"+m.Instance, "S"+m.Instance
			m.Instance = "I" + m.Instance
		}
		return m
	}
	fault := func(d mortise.DiskFault) mortise.DiskFault {
		d.Name, d.Instance = "N"+d.Name, "I"+d.Instance
		return d
	}
	each := func(faults []mortise.DiskFault) (all []mortise.DiskFault) {
		for _, d := range faults {
			all = append(all, fault(d))
		}
		return all
	}
	f.reports = slices.Clone(f.reports)
	for i := range f.reports {
		r := &f.reports[i]
		if r.From = "from " + r.Addr; r.Status == nil {
			continue
		}
		s, a := *r.Status, &query.HereAnswer{Failed: r.Answer.Failed, Durable: r.Answer.Durable,
			Replicas: r.Answer.Replicas, Leaderless: r.Answer.Leaderless}
		for _, name := range r.Answer.Founders {
			a.Founders = append(a.Founders, "N"+name)
		}
		s.Member, s.Cluster, s.Voters = member(s.Member), "cluster", slices.Clone(s.Voters)
		for j := range s.Voters {
			s.Voters[j] = member(s.Voters[j])
		}
		if s.Leader != "" {
			s.Leader = "N" + s.Leader
		}
		if s.Group != "" {
			s.Group = "G" + s.Group
		}
		if s.Disk != nil {
			d := fault(*s.Disk)
			s.Disk = &d
		}
		s.FaultyDisks = each(s.FaultyDisks)
		r.Status, r.Answer = &s, a
	}
	if f.health != nil {
		h := *f.health
		h.Leader, h.Disks, h.Missing = "N"+h.Leader, each(h.Disks), slices.Clone(h.Missing)
		for i := range h.Missing {
			h.Missing[i].Member = member(h.Missing[i].Member)
		}
		f.health = &h
	}
	return f
}

// rareFacts are situations that differ from those of furtherFacts in one thing that decides.
func rareFacts() map[string]facts {
	health := func(change func(*mortise.Health)) *mortise.Health {
		h := &mortise.Health{Leader: "a", Eligible: 5, Target: 5, Advice: "any one instance may be stopped"}
		if change != nil {
			change(h)
		}
		return h
	}
	changed := func(changes ...func(*guest.Report)) func(*guest.Report) {
		return func(r *guest.Report) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	durable := func(r *guest.Report) { r.Answer.Durable = true }
	failed := func(r *guest.Report) { r.Answer.Failed = "it is broken" }
	five := func(r *guest.Report) { r.Status.Voters = voting("a", "b", "c", "d", "e") }
	founders := func(r *guest.Report) { r.Answer = &query.HereAnswer{Founders: []string{"a", "b", "z"}} }
	unborn := func(waiting string) func(*guest.Report) {
		return func(r *guest.Report) {
			r.Status.Joined, r.Status.Group, r.Status.Leader, r.Status.Voters = false, "", "", nil
			r.Status.Waiting = waiting
		}
	}
	short := func(since time.Duration) func(*guest.Report) {
		return func(r *guest.Report) {
			r.Status.Leader, r.Answer.Leaderless, r.Status.Waiting = "", int64(since), "waits for "+since.String()
		}
	}
	elsewhere := func(r *guest.Report) { r.Status.Address = "10.0.0.9:1" }
	skewed := func(skew, took time.Duration) func(*guest.Report) {
		return func(r *guest.Report) { r.Skew, r.Took = skew, took }
	}
	grace := func(left time.Duration, waiting string) func(*guest.Report) {
		return func(r *guest.Report) { r.Status.GraceFor, r.Status.Waiting = left, waiting }
	}
	unresolved := func(text string) func(*guest.Report) {
		return func(r *guest.Report) { r.Status.Unresolved = text }
	}
	disk := func(instance string, state mortise.DiskState) mortise.DiskFault {
		return mortise.DiskFault{Name: instance, Instance: instance, State: state, Cause: "EIO of " + instance,
			Remedy: "mend " + instance}
	}
	silentVoter := func(name string) mortise.MissingVoter {
		return mortise.MissingVoter{Silent: 7 * time.Second, Member: mortise.Member{Name: name, Instance: name, Seen: true}}
	}
	wanted := func(n int) func(*guest.Report) { return func(r *guest.Report) { r.Status.VotersWanted = n } }
	lost := func(change ...func(*guest.Report)) func(*guest.Report) {
		return changed(append([]func(*guest.Report){leaderless, five}, change...)...)
	}
	none := func(h *mortise.Health) { h.CannotLose, h.Eligible = []string{"a", "b"}, 4 }
	all := map[string]facts{
		"each kind of silence": {reports: []guest.Report{missing("a", guest.OtherVersion), missing("b", guest.Silent),
			missing("c", guest.Silent), missing("d", guest.Foreign), missing("e", guest.Refused), missing("f", guest.Refused)}},
		"two groups, each with two": {reports: []guest.Report{instance("a", nil), instance("b", nil),
			instance("c", func(r *guest.Report) { r.Status.Group, r.Status.Leader = "h", "d" }),
			instance("d", func(r *guest.Report) { r.Status.Group, r.Status.Leader = "h", "d" }),
			instance("e", failed)}},
		"a second group without a leader": {reports: []guest.Report{instance("a", nil),
			instance("b", func(r *guest.Report) { r.Status.Group, r.Status.Leader = "h", "" })}, health: health(nil)},
		"a leader that only a failed one knows": {reports: []guest.Report{instance("a", failed),
			instance("b", leaderless)}},
		"unfounded, without a reason": {reports: []guest.Report{instance("a", unborn("")), instance("b", unborn("looks"))}},
		"unfounded: founders": {reports: []guest.Report{instance("a", changed(unborn(""), founders)),
			instance("b", unborn(""))}},
		"unfounded: each says why": {reports: []guest.Report{instance("a", unborn("founding waits: b is late")),
			instance("b", unborn("founding waits: b is late")), instance("c", unborn("founding waits: d has no time")),
			instance("d", unborn("founding waits: e is not ready: its disk is full")), instance("e", unborn("other"))}},
		"unfounded: one is silent, and others say why": {reports: []guest.Report{
			instance("a", unborn("founding waits: b is late")), missing("b", guest.Silent)}},
		"unfounded: each kind of silence": {reports: []guest.Report{instance("a", changed(unborn(""),
			func(r *guest.Report) { r.Status.Voters = voting("b", "c", "d", "e") })), missing("b", guest.Foreign),
			missing("c", guest.Refused), missing("d", guest.Silent), missing("e", guest.OtherVersion),
			missing("f", guest.Foreign), missing("g", guest.OtherVersion)}},
		"three of five voters are missing": {reports: []guest.Report{instance("a", lost(durable)),
			instance("b", lost(durable, func(r *guest.Report) { r.Status.Term = 7 })), missing("c", guest.Refused),
			missing("d", guest.Foreign), instance("e", lost(failed))}},
		"the fates of four voters": {reports: []guest.Report{instance("a", lost(founders)), missing("b", guest.OtherVersion),
			missing("c", guest.Silent), instance("new", func(r *guest.Report) { r.Addr = "d:1" }), missing("x", guest.Silent)}},
		"a voter without a vote": {reports: []guest.Report{instance("a", changed(leaderless, func(r *guest.Report) {
			r.Status.Voters = voting("a", "b", "c", "d")
			r.Status.Voters[1].Votes, r.Status.Voters[3].Name = false, ""
		})), missing("c", guest.Refused), missing("d", guest.Refused)}},
		"the newest view counts": {reports: []guest.Report{instance("a", changed(short(time.Second),
			func(r *guest.Report) { r.Status.Voters = voting("a", "b") })), instance("b", short(2*time.Second)),
			instance("c", changed(short(3*time.Second), func(r *guest.Report) {
				r.Status.Term, r.Status.Voters, r.Answer.Leaderless = 9, voting("c", "d", "e", "f", "g"), int64(3*time.Second)
			}))}},
		"of equal terms the longer list": {reports: []guest.Report{instance("a", changed(short(20*time.Second),
			func(r *guest.Report) { r.Status.Voters = voting("a", "b") })),
			instance("b", changed(short(30*time.Second), five))}},
		"no leader for ten seconds": {reports: []guest.Report{instance("a", short(settledAfter))}},
		"no leader for longer":      {reports: []guest.Report{instance("a", short(settledAfter+1))}},
		"no leader since now":       {reports: []guest.Report{instance("a", short(0))}},
		"just a majority": {reports: []guest.Report{instance("a", lost()), instance("b", lost()),
			instance("c", changed(lost(), elsewhere))}},
		"no leader, and disks": {reports: []guest.Report{instance("a", changed(leaderless, illDisk)),
			instance("b", changed(leaderless, func(r *guest.Report) {
				r.Status.FaultyDisks = []mortise.DiskFault{disk("d", mortise.DiskHung), disk("a", mortise.DiskLow)}
			})), instance("c", failed)}},
		"no leader, two have failed": {reports: []guest.Report{instance("a", leaderless), instance("b", changed(leaderless,
			failed)), instance("c", failed)}},
		"clocks, apart as much as is usual": {reports: []guest.Report{instance("a", skewed(3*time.Second, 4*time.Second)),
			instance("b", skewed(time.Second, time.Second)), instance("c", skewed(-500*time.Millisecond, time.Second))},
			health: health(nil)},
		"clocks, a little more": {reports: []guest.Report{instance("a", skewed(4*time.Second, 4*time.Second)),
			instance("b", skewed(time.Second, time.Second)), instance("c", skewed(-501*time.Millisecond, time.Second))},
			health: health(nil)},
		"clocks, besides": {reports: []guest.Report{instance("a", skewed(3*time.Second, 0)), instance("b", leaderless),
			missing("c", guest.Silent)}, health: health(nil)},
		"clocks of one": {reports: []guest.Report{instance("a", skewed(time.Hour, 0)), missing("b", guest.Silent)}},
		"grace, and one waits": {reports: []guest.Report{instance("a", grace(7*time.Second, "in its grace")),
			instance("b", grace(9*time.Second, "")), instance("c", grace(0, "waits for its turn"))}, health: health(nil)},
		"one of another group": {reports: []guest.Report{instance("a", nil), instance("b", changed(elsewhere,
			func(r *guest.Report) { r.Status.Group, r.Status.Leader, r.Status.Joined = "h", "h", false }))},
			health: health(nil)},
		"a lease of one that joins": {reports: []guest.Report{instance("a", nil), instance("b", func(r *guest.Report) {
			r.Status.Lease, r.Status.Joined = mortise.LeaseLost, false
		}), instance("c", func(r *guest.Report) { r.Status.Lease = mortise.LeaseLost })}, health: health(nil)},
		"entries of Join": {reports: []guest.Report{instance("a", unresolved("dns:///x leads nowhere")),
			instance("b", unresolved("dns:///y leads nowhere")), instance("c", unresolved("dns:///x leads nowhere"))},
			health: health(nil)},
		"a name twice, and a lease": {reports: []guest.Report{instance("a", nil), instance("b", changed(elsewhere,
			func(r *guest.Report) {
				r.Status.Namesake, r.Status.Lease = "b is another one's name too", mortise.LeaseJeopardy
			})), instance("c", nil)}, health: health(nil)},
		"disks of all": {reports: []guest.Report{instance("b", illDisk), instance("a", func(r *guest.Report) {
			r.Status.FaultyDisks = []mortise.DiskFault{disk("e", mortise.DiskLow), disk("d", mortise.DiskRemoved)}
		}), instance("c", nil)}, health: health(func(h *mortise.Health) {
			h.Disks = []mortise.DiskFault{disk("b", mortise.DiskLow), disk("c", mortise.DiskLow), disk("a", mortise.DiskHung),
				disk("a", mortise.DiskFailed)}
			h.Missing = []mortise.MissingVoter{silentVoter("a"), silentVoter("c")}
		})},
		"a silent voter that was restarted": {reports: []guest.Report{instance("a", nil), instance("b", nil),
			instance("new", func(r *guest.Report) { r.Addr = "c:1" })}, health: health(func(h *mortise.Health) {
			h.Missing, h.Change = []mortise.MissingVoter{silentVoter("c"), silentVoter("d")}, "c is replaced"
			h.Due = true
			none(h)
		})},
		"one vote of three": {reports: []guest.Report{instance("a", changed(wanted(3), func(r *guest.Report) {
			r.Status.Voters[1].Votes, r.Status.Voters[2].Votes = false, false
		})), instance("b", nil), instance("c", nil)}, health: health(none)},
		"as many votes as are wanted": {reports: []guest.Report{instance("a", wanted(3)), instance("b", wanted(3)),
			instance("c", wanted(3))}, health: health(none)},
		"one vote less than is wanted": {reports: []guest.Report{instance("a", wanted(4)), instance("b", wanted(4)),
			instance("c", wanted(4))}, health: health(none)},
		"no advice": {reports: []guest.Report{instance("a", nil), instance("b", leaderless),
			instance("c", func(r *guest.Report) { r.Status.Waiting = "waits" })},
			health: health(func(h *mortise.Health) { h.Advice = "" })},
		"the steps of three are one": {reports: []guest.Report{instance("a", nil), missing("b", guest.Foreign),
			instance("c", func(r *guest.Report) { r.Status.Waiting = "waits" })}, health: health(func(h *mortise.Health) {
			h.Advice, h.Missing = "start Nc again", []mortise.MissingVoter{silentVoter("b")}
		})},
		"founders are missing": {reports: []guest.Report{instance("a", founders), missing("z", guest.Silent),
			missing("y", guest.Refused)}, health: health(nil)},
		"founders are missing, and a stranger runs": {reports: []guest.Report{instance("a", founders), instance("b", nil)},
			health: health(func(h *mortise.Health) { h.Differs = []string{"Name: z is missing, and c runs"} })},
		"as many as Replicas says": {reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", nil),
			missing("d", guest.Silent)}, health: health(nil)},
		"an entry that resolves to nothing": {reports: []guest.Report{instance("a", nil), instance("b", nil),
			instance("c", nil)}, lookups: []error{errors.New("x resolves to no address"), errors.New("y too")},
			health: health(nil)},
	}
	return all
}
