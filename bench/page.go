package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

func page(r Record) string {
	var b strings.Builder
	b.WriteString("# How fast it is, beside others\n\n")
	b.WriteString("`cd bench && go run . -out ../docs` writes this page, and measures all but its last three sections\n" +
		"again ([bench/doc.go](../bench/doc.go)). Figures hold for one machine and one hour: compare within a\n" +
		"table, not between pages.\n\n")
	b.WriteString("![Pairs of Lock and Unlock and hand-overs that every peer completes in a second](speed.svg)\n\n")
	writeMachine(&b, r)
	writeGoals(&b, r)
	b.WriteString("## Everything measured\n\n")
	b.WriteString("Pairs of Lock and Unlock per second (median, 99th percentile of Lock);\n" +
		"[bench/workload.go](../bench/workload.go) defines the columns.\n\n")
	for _, durable := range []bool{true, false} {
		writeRates(&b, r, durable)
	}
	writeHandovers(&b, r)
	writeAgain(&b, r)
	writeCounts(&b, r)
	writeIdle(&b, r)
	writeFleet(&b, r)
	writeCosts(&b, r)
	writePromises(&b, r)
	writeFailures(&b, r)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeMachine(b *strings.Builder, r Record) {
	m := r.Machine
	fmt.Fprintf(b, "%s: %d cores (%s), %s,\n%s, %s", m.When, m.Cores, m.CPU, m.Kernel, m.Go, m.Disk)
	if m.Sync > 0 {
		fmt.Fprintf(b, " (one fdatasync: %s)", shortTime(m.Sync))
	}
	fmt.Fprintf(b, ". %s, %s for each measurement; the peers take turns.\n", r.medians(), shortTime(r.Duration))
	others, most := r.others()
	fmt.Fprintf(b, "Other processes used %.2f cores meanwhile (median; %.2f in the worst run).\n", others, most)
	if others > quietCores {
		b.WriteString("**That is much: the figures are rough, and a peer that was measured while others were\n" +
			"busier looks worse than it is.**\n")
	}
	if r.Quick {
		b.WriteString("**A quick run: a tenth of the held locks, waiters, instances and sessions, so that not all\n" +
			"goals are about the same.**\n")
	}
	b.WriteString("\n")
}

// writeFailures writes the measurements that have failed or are doubtful, except those that a table
// already shows.
func writeFailures(b *strings.Builder, r Record) {
	warnings := slices.DeleteFunc(slices.Clone(r.Warnings), func(w string) bool {
		return slices.ContainsFunc(r.Results, func(x Result) bool {
			return x.Failed != "" && strings.HasPrefix(w, x.Peer+", "+x.Workload+", round ") &&
				strings.HasSuffix(w, ": "+x.Failed)
		})
	})
	if len(warnings) == 0 {
		return
	}
	b.WriteString("## What failed\n\n")
	for _, w := range warnings {
		b.WriteString(wrapped("- ", "  ", w))
	}
}

func wrapped(mark, margin, text string) string {
	const width = 100
	var b strings.Builder
	line := mark
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line = margin
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}

func (r Record) medians() string {
	if r.Rounds == 1 {
		return "One round"
	}
	return fmt.Sprintf("Medians of %d rounds", r.Rounds)
}

// others returns the number of cores that other processes used during the measurements: the median,
// and the maximum.
func (r Record) others() (usual, most float64) {
	var all []float64
	for _, x := range r.Results {
		all = append(all, x.Others)
		most = max(most, x.OthersMost)
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], most
}

func writeGoals(b *strings.Builder, r Record) {
	b.WriteString("## Goals\n\nThe goals are for mortise with TLS. No change may be worse than *must*; *reach* is the " +
		"target.\n**Bold** figures reach it, *italic* ones miss their must.\n\n")
	writeRatios(b, r)
	var rows [][]string
	for _, g := range goals() {
		if g.theirs == "" {
			must, reach, value, verdict := g.limit(g.must), g.limit(g.reach), g.measured(r), g.verdict(r)
			rows = append(rows, []string{g.about, must, reach, marked(value, verdict)})
		}
	}
	writeTable(b, []string{"", "must", "reach", "mortise"}, rows)
}

func writeRatios(b *strings.Builder, r Record) {
	b.WriteString("The factor by which mortise is better (must, reach), compared on disk with etcd and wire-sync-tls,\n" +
		"and in memory with the rest. In the last two columns, and in the row re-lock, mortise has sticky\n" +
		"locks. The columns of the wire are limits: it only sends the messages and writes the entries that\n" +
		"a lock costs ([bench/wire.go](../bench/wire.go)), so ×0.5 there means twice its time:\n\n")
	head := []string{""}
	var rows [][]string
	for _, g := range goals() {
		if g.theirs == "" {
			continue
		}
		if !slices.Contains(head, g.theirs) {
			head = append(head, g.theirs)
		}
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[0] == g.about }) {
			rows = append(rows, []string{g.about})
		}
	}
	for i := range rows {
		rows[i] = append(rows[i], make([]string, len(head)-1)...)
		for _, g := range goals() {
			if g.theirs != "" && g.about == rows[i][0] {
				rows[i][slices.Index(head, g.theirs)] = fmt.Sprintf("%s (%s, %s)", marked(g.measured(r), g.verdict(r)),
					cmp.Or(g.limit(g.must), "–"), cmp.Or(g.limit(g.reach), "–"))
			}
		}
	}
	writeTable(b, head, rows)
}

func marked(figure, verdict string) string {
	switch verdict {
	case reached:
		return "**" + figure + "**"
	case missed:
		return "*" + figure + "*"
	}
	return cmp.Or(figure, verdict)
}

func writeTable(b *strings.Builder, head []string, rows [][]string) {
	keep := func(i int) bool {
		return i == 0 || slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" })
	}
	line := func(cells []string) {
		for i, c := range cells {
			if keep(i) {
				b.WriteString("| " + c + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	b.WriteString("\n")
}

func workloadTitle(name string) string {
	switch name {
	case "serial":
		return "serial"
	case "parallel64":
		return "64 callers"
	case "parallel1024":
		return "1,024 callers"
	case "parallel8192":
		return "8,192 callers"
	case "handover3":
		return "hand-over, 3 waiters"
	case "handover64":
		return "hand-over, 64 waiters"
	case "relock":
		return "re-lock"
	case "zipf":
		return "Zipf mix"
	case "own64":
		return "64 callers, each on one instance"
	case "local64":
		return "hand-over, 64 waiters on one instance"
	case "mostly":
		return "Zipf mix, 95% on one instance"
	case "turns3":
		return "by turns on three instances"
	case "recall":
		return "free, after another instance"
	}
	return name
}

func (r Record) measured(workloads ...string) (list []PeerRecord) {
	for _, p := range r.Peers {
		if slices.ContainsFunc(workloads, func(w string) bool { _, ok := r.find(p.Name, w); return ok }) {
			list = append(list, p)
		}
	}
	return list
}

func (r Record) whyNot(p PeerRecord, workload string) string {
	if why := p.Lacks[workload]; why != "" {
		return "no: " + why
	}
	i := slices.IndexFunc(r.Results, func(x Result) bool { return x.Peer == p.Name && x.Workload == workload })
	if i < 0 {
		return ""
	}
	return "no: " + strings.ReplaceAll(r.Results[i].Failed, "|", "/")
}
