package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
)

// This file describes, for operators, instances that do not fit the group. Each sentence begins
// with the word for what is wrong, and its next step stands behind the last semicolon.

// maxUnlisted limits how many instances that are no founders may be a founder under a wrong name. A
// group with more of them has such instances on purpose.
const maxUnlisted = 3

// misnamed returns a sentence if founders are missing while instances run that are no founders, and
// otherwise "". Nothing proves that such an instance should be a founder, so the sentence names
// both ways out.
func misnamed(f *voters.Facts) string {
	missing, unlisted := slices.Clone(f.Settings.Founders), []string(nil)
	for r := range f.All() {
		switch {
		case !r.Session || !r.Reachable || r.Leaving:
		case slices.Contains(f.Settings.Founders, r.Name):
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == r.Name })
		case r.Name != "":
			unlisted = append(unlisted, plain.Text(r.Name+" at "+r.Addr))
		}
		if len(missing) == 0 || len(unlisted) > maxUnlisted {
			return ""
		}
	}
	if len(unlisted) == 0 || len(missing) == 0 {
		return ""
	}
	slices.Sort(unlisted)
	names, who := strings.Join(missing, ", "), strings.Join(unlisted, ", ")
	founder, runs := "the founder "+names+" does not answer", " runs and is not one of the Founders, so it cannot vote"
	if len(missing) > 1 {
		founder = "the founders " + names + " do not answer"
	}
	if len(unlisted) > 1 {
		runs = " run and are not among the Founders, so they cannot vote"
	}
	return fmt.Sprintf("Name: %s, and %s%s; if one of %s should be %s, restart it under this Name, and otherwise "+
		"start %s again", founder, who, runs, who, missing[0], names)
}

// differing remembers the replicas that had another state than a majority of the voters. Such a
// replica retires, its instance ends, and the group may go on without it. Only Facts uses it.
type differing struct{ all []differed }

type differed struct {
	raft     uint64
	instance nodeid.ID
	name     string // escaped; empty if it is unknown
	sentence string
	over     bool // an instance with its name has started anew
}

// maxDiffering limits the remembered replicas, the last ones.
const maxDiffering = 8

// sentences returns a sentence for each replica that has differed. It ends when an instance with
// the same name has started anew.
func (d *differing) sentences(wall func() time.Time, s *raftlog.Survey, f *voters.Facts) (list []string) {
	for _, p := range s.Replicas {
		known := slices.ContainsFunc(d.all, func(o differed) bool { return o.raft == p.ID })
		if p.Differed != 0 && !known {
			d.all = append(d.all, newDiffered(&p, wall(), s, f))
		}
	}
	d.all = d.all[max(0, len(d.all)-maxDiffering):]
	for i := range d.all {
		o := &d.all[i]
		for r := range f.All() {
			o.over = o.over || o.name != "" && plain.Text(r.Name) == o.name && r.Instance != o.instance
		}
		if !o.over {
			list = append(list, o.sentence)
		}
	}
	return list
}

func newDiffered(p *raftlog.Progress, at time.Time, s *raftlog.Survey, f *voters.Facts) differed {
	o := differed{raft: p.ID}
	who := fmt.Sprintf("replica %016x", p.ID)
	for _, v := range Placed(&s.Config) {
		if v.Raft == p.ID {
			o.instance, who = v.Instance, "the instance at "+v.Addr
		}
	}
	for r := range f.All() {
		if r.Instance == o.instance {
			o.name = plain.Text(r.Name)
		}
	}
	o.sentence = fmt.Sprintf("State: the replica of %s had another state than the majority after entry %d and has ended, "+
		"found at %s: its memory or its disk is damaged, or its build has other rules; check the build and the machine of "+
		"%[1]s, keep its log and its directory for a report, and start it again with an empty directory",
		cmp.Or(o.name, plain.Text(who)), p.Differed, at.UTC().Format(time.DateTime+" UTC"))
	return o
}

// Refused remembers the instances that the leader refuses because of their builds. The zero value
// is ready to use. It is safe for concurrent use.
type Refused struct {
	mu  sync.Mutex // guards all; held only for assignments
	all []refusedBuild
}

type refusedBuild struct {
	who string // escaped
	why session.Outdated
	at  clock.Time
}

const (
	maxRefused = 8
	// refusedFor is longer than the pause after which a refused instance asks again, a third of its
	// TTL, unless that TTL is very long.
	refusedFor = time.Minute
)

// Note records that an instance with this record was refused.
func (r *Refused) Note(now clock.Time, record *Record, why session.Outdated) {
	one := refusedBuild{who: plain.Text(cmp.Or(record.Name, "an instance") + " at " + record.Addr), why: why, at: now}
	r.mu.Lock()
	defer r.mu.Unlock()
	same := func(o refusedBuild) bool { return o.who == one.who || now.Sub(o.at) >= refusedFor }
	if r.all = slices.DeleteFunc(r.all, same); len(r.all) < maxRefused {
		r.all = append(r.all, one)
	}
}

// sentences returns a sentence for each instance that was refused lately.
func (r *Refused) sentences(now clock.Time) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(o refusedBuild) bool { return now.Sub(o.at) >= refusedFor })
	for _, o := range r.all {
		list = append(list, fmt.Sprintf("Build: %s is refused: %s", o.who, o.why))
	}
	slices.Sort(list)
	return list
}
