//go:build linux

package proctest

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// gap describes how long instances were granted no free locks after a departure. It covers only
// instances that ran during that whole time.
type gap struct {
	nobody time.Duration // the longest time in which none of the instances was granted a lock
	worst  time.Duration // the longest time in which one of the instances was granted no lock
	by     string        // the name of this instance
}

// gaps prints the gap after each departure, and compares it with the goal.
func (w *world) gaps(events []history.Event) {
	w.t.Helper()
	if len(w.departures) == 0 {
		return
	}
	probes := w.probes(events)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "instance\twas\thow\tgone after\tno grant for\tworst instance")
	worst := map[string][]time.Duration{}
	for _, d := range w.departures {
		fmt.Fprintf(table, "%s\t%s\t%s\t%v\t", d.who.life, d.role, d.how, d.took.Round(time.Millisecond))
		g := d.gap(w, probes)
		if g.by == "" {
			fmt.Fprintln(table, "no instance was left\t")
			continue
		}
		fmt.Fprintf(table, "%v\t%v %s\n", g.nobody.Round(time.Millisecond), g.worst.Round(time.Millisecond), g.by)
		if w.mayLose[d.who] {
			continue // the scenario removes the majority, so there is no goal
		}
		worst[d.how] = append(worst[d.how], g.nobody)
		if limit := slack * w.goal(d.how); g.nobody > limit {
			w.t.Errorf("after %s of %s no free lock was granted for %v, more than %d times the goal of %v",
				d.how, d.who.life, g.nobody, slack, w.goal(d.how))
		}
	}
	table.Flush()
	for _, how := range []string{byLeave, byKill} {
		if all := worst[how]; len(all) > 0 {
			slices.Sort(all)
			fmt.Fprintf(&text, "%s: %d departures, no free lock was granted for: median %v, longest %v (goal %v)\n",
				how, len(all), all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond),
				w.goal(how))
		}
	}
	w.t.Logf("departures:\n%s", text.String())
}

// probes returns for each stream, in ascending order, the times at which the process was granted an
// uncontended key.
func (w *world) probes(events []history.Event) [][]int64 {
	times := make([][]int64, len(w.lives)+1)
	probing := make([]map[uint64]bool, len(w.lives)+1)
	for _, e := range events {
		switch {
		case e.Kind == history.Call && strings.HasPrefix(e.Key, "probe/"):
			if probing[e.Stream] == nil {
				probing[e.Stream] = map[uint64]bool{}
			}
			probing[e.Stream][e.Op] = true
		case e.Kind == history.Return && e.Outcome == history.Granted && probing[e.Stream][e.Op]:
			times[e.Stream] = append(times[e.Stream], e.At)
		}
	}
	return times
}

func (d departure) gap(w *world, probes [][]int64) gap {
	var g gap
	var all []int64
	from, until := d.at.UnixNano(), d.until.UnixNano()
	for i, in := range w.lives {
		if !in.livedThrough(d) {
			continue
		}
		own := between(probes[i+1], from, until)
		all = append(all, own...)
		if longest := longestGap(own, from, until); longest > g.worst {
			g.worst, g.by = longest, in.life
		}
	}
	slices.Sort(all)
	g.nobody = longestGap(all, from, until)
	return g
}

// livedThrough reports whether an instance was ready before a departure and ran until the end of
// the period of that departure.
func (in *instance) livedThrough(d departure) bool {
	if !in.wasReady(d.at.UnixNano()) {
		return false
	}
	for _, other := range in.w.departures {
		if other.who == in && other.at.Before(d.until) {
			return false
		}
	}
	return true
}

// wasReady reports whether an instance was ready before the given time.
func (in *instance) wasReady(at int64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return !in.readyAt.IsZero() && in.readyAt.UnixNano() <= at
}

// between returns the times in the given period, followed by the next later time if there is one.
func between(times []int64, from, until int64) []int64 {
	first, _ := slices.BinarySearch(times, from)
	last, _ := slices.BinarySearch(times, until)
	return slices.Clone(times[first:min(last+1, len(times))])
}

// The duration open applies to a gap that lasts beyond the next departure. If the gap began at
// least this long before that departure, all of it counts for the previous departure. Otherwise
// only the part before that departure counts for the previous one.
const open = 100 * time.Millisecond

// longestGap returns the length of the longest gap that began in the given period.
func longestGap(times []int64, from, until int64) time.Duration {
	longest, last := int64(0), from
	for _, at := range times {
		if at > until && last > until-int64(open) {
			at = until
		}
		if last < until {
			longest, last = max(longest, at-last), at
		}
	}
	if last < until { // no event follows
		longest = max(longest, until-last)
	}
	return time.Duration(longest)
}
