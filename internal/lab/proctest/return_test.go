//go:build linux

package proctest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	returnsEnv = "MORTISE_RETURNS" // number of leaders stopped and continued; default 3
	stoppedFor = 15 * time.Second
	// A gap counts as caused by the return of a leader if it begins within this time after SIGCONT.
	returnTime = 6 * time.Second

	// returnGoal is the goal for the longest time in which no free lock is granted, after the
	// stopped process of a former leader continues. All directories are on one disk.
	returnGoal = 300 * time.Millisecond
)

// TestReturn stops the process of the leader of a durable group for longer than a lease, and then
// lets the process continue. All directories are on one disk, so the writes of the returning voter
// delay the syncs of the other voters. The new leader must keep its leadership, and locks must be
// granted all the time.
func TestReturn(t *testing.T) {
	begin(t, whole)
	rounds := times(t, returnsEnv, 3)
	w := newWorld(t, settings{replicas: 3, durable: true, callers: times(t, "MORTISE_CALLERS", 8)})
	fleet := w.startAll(3)
	w.waitReady(slack*readyTime, fleet...)
	var outages []spell
	for range rounds {
		leader := w.leader(fleet...)
		rest := without(fleet, leader)
		w.lose(leader)
		before := time.Now()
		time.Sleep(returnTime + apart) // for comparison: the gaps while no leader returns
		stopped := time.Now()
		leader.signal(syscall.SIGSTOP)
		successor := w.leader(rest...)
		time.Sleep(time.Until(stopped.Add(stoppedFor)))
		term := successor.status().Term
		outages = append(outages, spell{"nothing", before, stopped.Add(-apart), rest},
			spell{"stopped", stopped, time.Now(), rest}, spell{"continued", time.Now(), time.Now().Add(returnTime),
				rest})
		leader.signal(syscall.SIGCONT)
		time.Sleep(returnTime)
		if s := successor.status(); !s.Leading || s.Term != term {
			t.Errorf("%s led in term %d when %s continued, and now: %s", successor.life, term, leader.life,
				successor.describe())
		}
		w.waitAllReady(slack * readyTime)
	}
	w.verdict(slack * readyTime)
	w.spells(outages, map[string]time.Duration{"continued": returnGoal})
}

func times(t *testing.T, name string, standard int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number from 1 on", name, text)
	}
	return n
}

// apart is the time between two outages. The grant that ends a gap may come after the end of the
// outage, and must come before the next one.
const apart = time.Second

type spell struct {
	what     string
	from, to time.Time
	rest     []*instance // the other instances
}

// spells prints the longest gaps in each period of the list. It compares the longest time without
// any grant with the goal for that kind of period.
func (w *world) spells(list []spell, goals map[string]time.Duration) {
	w.t.Helper()
	probes := w.probes(w.recorded())
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\tno grant for\tworst instance\tgrants of probes")
	all := map[string][]time.Duration{}
	for _, o := range list {
		g, grants := o.gap(w, probes)
		fmt.Fprintf(table, "%s\t%v\t%v\t%d\n", o.what, g.nobody.Round(time.Millisecond),
			g.worst.Round(time.Millisecond), grants)
		all[o.what] = append(all[o.what], g.nobody)
		if goal := goals[o.what]; goal > 0 && g.nobody > slack*goal {
			w.t.Errorf("%s: no free lock was granted for %v, more than %d times the goal of %v", o.what,
				g.nobody, slack, goal)
		}
	}
	table.Flush()
	for what, gaps := range all {
		slices.Sort(gaps)
		fmt.Fprintf(&text, "%s: %d times, no free lock was granted for: median %v, longest %v (goal %v)\n",
			what, len(gaps), gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond),
			goals[what])
	}
	w.t.Logf("outages:\n%s", text.String())
}

func (o spell) gap(w *world, probes [][]int64) (g gap, grants int) {
	var all []int64
	from, to := o.from.UnixNano(), o.to.UnixNano()
	for i, in := range w.lives {
		if !slices.Contains(o.rest, in) {
			continue
		}
		own := between(probes[i+1], from, to)
		all = append(all, own...)
		g.worst = max(g.worst, longestGap(own, from, to))
	}
	slices.Sort(all)
	g.nobody = longestGap(all, from, to)
	return g, len(all)
}
