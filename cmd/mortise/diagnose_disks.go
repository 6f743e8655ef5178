package main

import (
	"slices"
	"strings"

	"github.com/mortise-lock/mortise"
)

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
