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

type facts struct {
	reports []guest.Report
	lookups []error         // one for each entry of Join that resolves to no address
	health  *mortise.Health // nil means that no leader has reported
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
		return r.Status != nil && r.Status.Joined && r.Answer.Failed == ""
	})
}

// leaders returns one member of each group in which at least one member reports a leader.
func (f facts) leaders() (list []guest.Report) {
	for _, r := range f.members() {
		known := slices.ContainsFunc(list, func(o guest.Report) bool { return o.Status.Group == r.Status.Group })
		if r.Status.Leader != "" && !known {
			list = append(list, r)
		}
	}
	return list
}

func (f facts) silent() []guest.Report {
	return f.filter(func(r guest.Report) bool { return r.Status == nil })
}

// view returns the report of the member with the highest term, because that member has the newest
// data about its group.
func (f facts) view() guest.Report {
	members := f.members()
	return slices.MaxFunc(members, func(a, b guest.Report) int {
		return cmp.Or(cmp.Compare(a.Status.Term, b.Status.Term),
			cmp.Compare(len(a.Status.Voters), len(b.Status.Voters)))
	})
}

// place returns the address of a report. If any report contains the name of the instance at that
// address, the name comes first.
func (f facts) place(r guest.Report) string {
	if name := names(f.reports)[r.Addr]; name != "" {
		return name + " at " + r.Addr
	}
	return r.Addr
}

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

func (f facts) fate(instance, address string) string {
	for _, r := range f.reports {
		if r.Status != nil && r.Status.Instance == instance {
			return "it answers here, so the network between the instances is cut"
		}
	}
	for _, r := range f.reports {
		if r.Addr != address {
			continue
		}
		switch r.Outcome {
		case guest.Answered:
			return plain.Sprintf("its process has been restarted: at %s a new instance answers, %s", address, r.Status.Name)
		case guest.Refused:
			return plain.Sprintf("its process does not run: %s refuses the connection", address)
		case guest.Silent:
			return plain.Sprintf("its machine or its network is down, or its process is suspended: %s does not answer",
				address)
		}
		return plain.Sprintf("something else answers at %s: %v", address, r.Err)
	}
	return "its address is not known"
}

func addressOf(list []mortise.Member, instance string) string {
	for _, m := range list {
		if m.Instance == instance {
			return m.Address
		}
	}
	return ""
}

// disks returns each faulty disk once. It uses the reports of the leader and of the instances.
// Disks that prevent an instance from voting come before disks that are almost full.
func (f facts) disks() (list []mortise.DiskFault) {
	add := func(faults []mortise.DiskFault) {
		for _, d := range faults {
			if !slices.ContainsFunc(list, func(o mortise.DiskFault) bool { return o.Instance == d.Instance }) {
				list = append(list, d)
			}
		}
	}
	for _, r := range f.answers() { // an instance's report about its own disk has precedence
		if s := r.Status; s.Disk != nil {
			add([]mortise.DiskFault{*s.Disk})
		}
	}
	if f.health != nil {
		add(f.health.Disks)
	}
	for _, r := range f.answers() {
		add(r.Status.FaultyDisks)
	}
	slices.SortStableFunc(list, func(a, b mortise.DiskFault) int {
		if aLow, bLow := a.State == mortise.DiskLow, b.State == mortise.DiskLow; aLow != bLow {
			if aLow {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

func (f facts) ill(instance string) bool {
	return slices.ContainsFunc(f.disks(), func(d mortise.DiskFault) bool {
		return d.Instance == instance &&
			d.State != mortise.DiskLow
	})
}

// refusing returns the address of the instance of a name, if that address refuses connections.
func (f facts) refusing(name string) string {
	all := names(f.reports)
	for _, r := range f.silent() {
		if r.Outcome == guest.Refused && all[r.Addr] == name {
			return r.Addr
		}
	}
	return ""
}

// grace returns the time until a new group grants locks. Zero means that it does. The grace is a
// phase of each new group, and no trouble.
func (f facts) grace() (left time.Duration) {
	for _, r := range f.answers() {
		left = max(left, r.Status.GraceFor)
	}
	return left
}
