package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// reached says what reaches a point.
type reached int

const (
	byNone reached = iota
	byReason
	byRig
	byCampaign
)

// judge returns what reaches a point, and the entry of exceptions.txt that it needs.
func judge(p point, campaigns, rigs, least int, reasons map[string]string) (_ reached, about string) {
	about, reason := p.reason(reasons)
	switch {
	case campaigns >= least:
		return byCampaign, ""
	case about == "":
		return byNone, ""
	case !strings.HasPrefix(reason, rigged):
		return byReason, about
	case rigs >= least:
		return byRig, about
	}
	return byNone, about
}

// often is how often a path must be reached to be reached every night.
const often = 20

func report(out io.Writer, points []point, byCampaigns, byRigs []int, reasons map[string]string, least int,
	verbose bool) error {
	var total [byCampaign + 1]int
	byDir, needed := map[string]*[byCampaign + 1]int{}, map[string]bool{}
	var missing []string
	for i, p := range points {
		dir := path.Dir(p.file)
		if byDir[dir] == nil {
			byDir[dir] = new([byCampaign + 1]int)
		}
		by, about := judge(p, byCampaigns[i], byRigs[i], least, reasons)
		byDir[dir][by]++
		total[by]++
		needed[about] = true
		if about, _ = p.reason(reasons); byCampaigns[i] < often*least {
			needed[about] = true // another night may not reach it
		}
		line := fmt.Sprintf("%9d %9d  %s:%d %s: %s: %s", byCampaigns[i], byRigs[i], p.file, p.line, p.fun, p.kind, p.text)
		if by == byNone {
			missing = append(missing, line)
		}
		if verbose {
			fmt.Fprintln(out, line, reasons[about])
		}
	}
	const row = "%-20s %8v %10v %6v %10v %8v\n"
	fmt.Fprintf(out, row, "rare paths", "all", "campaigns", "rigs", "exceptions", "missing")
	for _, s := range shells {
		if n := byDir[s.dir]; n != nil {
			fmt.Fprintf(out, row, s.dir, n[0]+n[1]+n[2]+n[3], n[byCampaign], n[byRig], n[byReason], n[byNone])
		}
	}
	fmt.Fprintf(out, row, "together", len(points), total[byCampaign], total[byRig], total[byReason], total[byNone])
	for _, about := range slices.Sorted(maps.Keys(reasons)) {
		if !needed[about] {
			fmt.Fprintf(out, "exceptions.txt need not name %s: the campaigns reached all of it\n", about)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	fmt.Fprintf(out, "\nReached fewer than %d times, by campaigns and by rigs. Let a campaign reach them, or give a "+
		"reason in\ninternal/lab/sometimes/exceptions.txt:\n%s\n", least, strings.Join(missing, "\n"))
	return errors.New("the campaigns do not reach all rare paths")
}
