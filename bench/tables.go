package main

import (
	"fmt"
	"slices"
	"strings"
)

func writeRates(b *strings.Builder, r Record, durable bool) {
	columns := []string{"serial", "relock", "parallel64", "parallel1024", "parallel8192", "zipf"}
	head := []string{"on disk before a grant"}
	if !durable {
		head = []string{"in memory, or not synced"}
	}
	for _, c := range columns {
		head = append(head, workloadTitle(c))
	}
	var rows [][]string
	for _, p := range r.measured(columns...) {
		if p.Durable != durable {
			continue
		}
		row := []string{p.Name}
		for _, c := range columns {
			row = append(row, rateCell(r, p, c))
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		writeTable(b, head, rows)
	}
}

func rateCell(r Record, p PeerRecord, workload string) string {
	x, ok := r.find(p.Name, workload)
	switch {
	case !ok && p.Kind == "wire": // it is no lock
		return ""
	case !ok:
		return r.whyNot(p, workload)
	}
	return fmt.Sprintf("%s (%s)", shortNumber(x.Rate), lockTimes(x))
}

func lockTimes(x Result) string { return shortTime(x.P50) + ", " + shortTime(x.P99) }

func writeHandovers(b *strings.Builder, r Record) {
	columns := []string{"handover3", "handover64"}
	peers := r.measured(columns...)
	if len(peers) == 0 {
		return
	}
	b.WriteString("Hand-overs a second (median, 99th percentile of the time from the call of Unlock to the next\n" +
		"holder's return from Lock), and the fewest and the most turns of a waiter:\n\n")
	head := []string{"", "3 waiters", "turns", "64 waiters", "turns"}
	var rows [][]string
	for _, p := range peers {
		row := []string{p.Name}
		for _, c := range columns {
			turns := ""
			if x, ok := r.find(p.Name, c); ok {
				turns = fmt.Sprintf("%s–%s", shortNumber(x.Least), shortNumber(x.Most))
			}
			row = append(row, rateCell(r, p, c), turns)
		}
		rows = append(rows, row)
	}
	writeTable(b, head, rows)
	b.WriteString("etcd has only 30 hand-overs a second with few waiters: every new waiter begins to watch at a past\n" +
		"revision, and etcd serves such watchers every 100 ms. With 64 waiters most have long been watching\n" +
		"when their turn comes.\n\n")
}

func writeAgain(b *strings.Builder, r Record) {
	columns := []string{"own64", "local64", "mostly", "turns3", "recall"}
	peers := r.measured(columns...)
	if len(peers) == 0 {
		return
	}
	b.WriteString("What sticky locks gain and cost, in the same form. In the last column, only the first of eight\n" +
		"pairs on each instance counts:\n\n")
	var rows [][]string
	for _, p := range peers {
		row := []string{p.Name}
		for _, c := range columns {
			row = append(row, rateCell(r, p, c))
		}
		rows = append(rows, row)
	}
	head := []string{""}
	for _, c := range columns {
		head = append(head, workloadTitle(c))
	}
	writeTable(b, head, rows)
}

func writeCounts(b *strings.Builder, r Record) {
	if len(r.measured("held", "waiters", "kill")) == 0 {
		return
	}
	peers := r.measured("serial", "held", "waiters", "kill") // includes peers that cannot run the last three workloads
	b.WriteString("*held*: locks that are taken and kept. *bytes each*: how much the heap of all three members and the\n" +
		"handles grows for each. *queue served*: a queue for one key. *kill to grant*: from kill -9 of the\n" +
		"leading process to the next grant in another (median, worst):\n\n")
	var rows [][]string
	for _, p := range peers {
		if p.Kind == "wire" {
			continue
		}
		row := []string{p.Name, r.whyNot(p, "held"), "", r.whyNot(p, "waiters"), r.whyNot(p, "kill")}
		if x, ok := r.find(p.Name, "held"); ok {
			row[1] = fmt.Sprintf("%s in %s", shortNumber(x.Count), shortTime(x.Took))
			if embedded(p.Kind) && p.Kind != "olric" { // it allocates its tables before they are full
				row[2] = shortNumber(x.Heap)
			}
		}
		if x, ok := r.find(p.Name, "waiters"); ok {
			row[3] = fmt.Sprintf("%s in %s", shortNumber(x.Count), shortTime(x.Took))
		}
		if x, ok := r.find(p.Name, "kill"); ok {
			row[4] = lockTimes(x)
		}
		rows = append(rows, row)
	}
	writeTable(b, []string{"", "held", "bytes each", "queue served", "kill to grant"}, rows)
}

func writeIdle(b *strings.Builder, r Record) {
	sizes := []string{"idle1", "idle10", "idle100", "idle1000"}
	peers := r.measured(sizes...)
	if len(peers) == 0 {
		return
	}
	b.WriteString("Idle instances, all in one process; three vote. Nothing is extrapolated.\n\n")
	var rows [][]string
	for _, p := range peers {
		for _, s := range sizes {
			x, ok := r.find(p.Name, s)
			if !ok {
				if why := r.whyNot(p, s); why != "" {
					rows = append(rows, []string{p.Name, strings.TrimPrefix(s, "idle"), why, "", "", ""})
				}
				continue
			}
			percent := 100 * x.CPU.Seconds()
			rows = append(rows, []string{p.Name, shortNumber(x.Count),
				fmt.Sprintf("%s%% (%s%%)", threeDigits(percent), threeDigits(percent/x.Count)),
				fmt.Sprintf("%s (%s)", shortBytes(x.Wire), shortBytes(x.Wire/x.Count)), shortBytes(x.Heap),
				shortNumber(x.Sockets)})
		}
	}
	writeTable(b, []string{"", "instances", "share of one core (each)", "over loopback, a second (each)",
		"heap of each", "sockets of each, both ends"}, rows)
}

func writeFleet(b *strings.Builder, r Record) {
	list := fleet()
	var names []string
	for _, f := range list {
		names = append(names, f.workload)
	}
	peers := r.measured(names...)
	head, rows := []string{""}, [][]string{}
	for _, p := range peers {
		head = append(head, p.Name)
	}
	for _, f := range list {
		row, count := []string{""}, ""
		for _, p := range peers {
			x, ok := r.find(p.Name, f.workload)
			if !ok {
				row = append(row, "")
				continue
			}
			row, count = append(row, f.show(x)), shortNumber(x.Count)
		}
		if row[0] = strings.ReplaceAll(f.about, "#", count); count != "" {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString("Many instances in one process, and many sessions on one leader. A session here is a client and a\n" +
		"port that does not listen; the leader treats it like a member.\n\n")
	writeTable(b, head, rows)
}

// A fleetRow is a row about many instances or sessions. In the title, # stands for their number.
type fleetRow struct {
	workload, about string
	show            func(Result) string
}

func fleet() []fleetRow {
	took := func(x Result) string { return shortTime(x.Took) }
	return []fleetRow{
		{"coldstart100", "# instances, from nothing to all ready", took},
		{"coldstart1000", "# instances, from nothing to all ready", took},
		{"beside1000", "Lock beside # idle instances; its 99th percentile, compared with none", func(x Result) string {
			return lockTimes(x) + "; " + shortRatio(timesAlone(x))
		}},
		{"sessions", "# sessions begun one after the other", took},
		{"sessions", "the idle leader: heap and stacks per session, share of a core", func(x Result) string {
			return fmt.Sprintf("%s, %s%%", shortBytes(x.Heap), threeDigits(100*x.CPU.Seconds()))
		}},
		{"storm", "kill -9 of their leader, until all are attached again", took},
		{"storm", "Lock once attached again", lockTimes},
		{"line", "# waiters on 1,000 keys, served in order", func(x Result) string {
			return fmt.Sprintf("%s, %s/s", took(x), shortNumber(x.Rate))
		}},
	}
}

// embedded reports whether the members run in this process, so that its figures include them.
func embedded(kind string) bool {
	return slices.Contains([]string{"mortise", "etcd", "nats", "olric"}, kind)
}

func writeCosts(b *strings.Builder, r Record) {
	columns := []string{"serial", "parallel64", "parallel1024", "parallel8192"}
	var rows [][]string
	for _, p := range r.measured(columns...) {
		if !embedded(p.Kind) {
			continue
		}
		row := []string{p.Name}
		for _, c := range columns {
			x, ok := r.find(p.Name, c)
			if !ok {
				row = append(row, "")
				continue
			}
			row = append(row, fmt.Sprintf("%s, %s", shortTime(x.CPU), shortNumber(x.Allocs)))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString("Processor time and allocations for one pair, of the callers and all three members together:\n\n")
	writeTable(b, []string{"", "serial", "64 callers", "1,024 callers", "8,192 callers"}, rows)
}

func writePromises(b *strings.Builder, r Record) {
	b.WriteString("## What each is\n\n[CHOOSING.md](CHOOSING.md#in-one-table) compares what they promise.\n\n")
	var rows [][]string
	for _, p := range r.Peers {
		version := p.Version
		if p.Missing != "" {
			version = "skipped: " + p.Missing
		}
		same := func(row []string) bool { return row[1] == version && row[2] == p.Promise }
		if i := slices.IndexFunc(rows, same); i >= 0 {
			rows[i][0] += ", " + p.Name
			continue
		}
		rows = append(rows, []string{p.Name, version, p.Promise})
	}
	writeTable(b, []string{"", "version", "it is"}, rows)
}
