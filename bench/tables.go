package main

import (
	"fmt"
	"strings"
)

func writeRates(b *strings.Builder, r Record, durable bool) {
	columns := []string{"serial", "relock", "parallel64", "parallel1024", "parallel8192", "zipf"}
	head, base := []string{"on disk before it counts"}, "etcd"
	if !durable {
		head, base = []string{"in memory, or not synced"}, "etcd-nosync"
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
			row = append(row, rateCell(r, p, c, base))
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		writeTable(b, head, rows)
	}
}

// rateCell shows rate, latency and the ratio to another peer.
func rateCell(r Record, p PeerRecord, workload, base string) string {
	x, ok := r.find(p.Name, workload)
	if !ok {
		return r.whyNot(p, workload)
	}
	cell := fmt.Sprintf("%s (%s / %s)", shortNumber(x.Rate), shortTime(x.P50), shortTime(x.P99))
	if to, ok := r.find(base, workload); ok && p.Name != base {
		cell += " " + shortRatio(x.Rate/to.Rate)
	}
	return cell
}

func writeHandovers(b *strings.Builder, r Record) {
	columns := []string{"handover3", "handover64"}
	peers := r.measured(columns...)
	if len(peers) == 0 {
		return
	}
	b.WriteString("Hand-overs a second (median / 99th percentile of the gap from one holder's call of Unlock " +
		"to the next holder's return from Lock), and the\n")
	b.WriteString("turns of the waiter that had fewest and of the one that had most:\n\n")
	head := []string{"", "3 waiters", "turns", "64 waiters", "turns"}
	var rows [][]string
	for _, p := range peers {
		base := "etcd"
		if !p.Durable {
			base = "etcd-nosync"
		}
		row := []string{p.Name}
		for _, c := range columns {
			turns := ""
			if x, ok := r.find(p.Name, c); ok {
				turns = fmt.Sprintf("%s to %s", shortNumber(x.Least), shortNumber(x.Most))
			}
			row = append(row, rateCell(r, p, c, base), turns)
		}
		rows = append(rows, row)
	}
	writeTable(b, head, rows)
	b.WriteString("etcd's 30 hand-overs a second with few waiters come from its 100 ms cycle for watchers that " +
		"have fallen behind: a waiter begins to watch its predecessor at a\n")
	b.WriteString("revision that is already past, and such watchers are served on that cycle. With 64 waiters " +
		"most have long been watching when their turn comes.\n\n")
}

func writeCounts(b *strings.Builder, r Record) {
	if len(r.measured("held", "waiters", "kill")) == 0 {
		return
	}
	peers := r.measured("serial", "held", "waiters", "kill") // those too that can do none of the three
	b.WriteString("Locks that are taken and kept (how many in which time; what the heap of the process grows " +
		"by for each: all three members and the handles, where they are\n")
	b.WriteString("in it), a long queue for one key that is served once through, and kill -9 of the leading " +
		"process to the next grant in another (median / worst):\n\n")
	var rows [][]string
	for _, p := range peers {
		row := []string{p.Name, r.whyNot(p, "held"), "", r.whyNot(p, "waiters"), r.whyNot(p, "kill")}
		if x, ok := r.find(p.Name, "held"); ok {
			row[1] = fmt.Sprintf("%s in %s", shortNumber(x.Count), shortTime(x.Took))
			if p.Kind == "mortise" || p.Kind == "etcd" {
				row[2] = shortNumber(x.Heap)
			}
		}
		if x, ok := r.find(p.Name, "waiters"); ok {
			row[3] = fmt.Sprintf("%s in %s", shortNumber(x.Count), shortTime(x.Took))
		}
		if x, ok := r.find(p.Name, "kill"); ok {
			row[4] = fmt.Sprintf("%s / %s", shortTime(x.P50), shortTime(x.P99))
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
				fmt.Sprintf("%s%% (%s%% each)", threeDigits(percent), threeDigits(percent/x.Count)),
				fmt.Sprintf("%s (%s each)", shortBytes(x.Wire), shortBytes(x.Wire/x.Count)), shortBytes(x.Heap),
				shortNumber(x.Sockets)})
		}
	}
	writeTable(b, []string{"", "instances", "of one core", "over loopback, a second", "heap of each",
		"sockets of each, both ends"}, rows)
}

func writeFleet(b *strings.Builder, r Record) {
	rows := [][]string{}
	for _, w := range []string{"coldstart100", "coldstart1000", "beside1000", "sessions", "storm", "line"} {
		for _, p := range r.measured(w) {
			x, _ := r.find(p.Name, w)
			row := []string{p.Name, fleetTitle(w), shortNumber(x.Count), "", "", "", ""}
			if x.Took > 0 {
				row[3] = shortTime(x.Took)
			}
			switch w {
			case "beside1000", "storm":
				row[4] = fmt.Sprintf("%s / %s", shortTime(x.P50), shortTime(x.P99))
			case "sessions":
				row[5] = fmt.Sprintf("%s each, %s%% of a core", shortBytes(x.Heap), threeDigits(100*x.CPU.Seconds()))
			case "line":
				row[6] = shortNumber(x.Rate)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString("Many instances, and many sessions on one leader. A session here is a port that does not " +
		"listen and a client; to the leader it is what a\n")
	b.WriteString("member is. The leader's memory is its heap and stacks.\n\n")
	writeTable(b, []string{"", "", "how many", "took", "Lock", "leader at rest", "hand-overs a second"}, rows)
}

// fleetTitle is what the table says of a workload.
func fleetTitle(name string) string {
	switch name {
	case "coldstart100", "coldstart1000":
		return "instances in one process, from nothing to all ready"
	case "beside1000":
		return "one caller beside idle instances"
	case "sessions":
		return "sessions, begun one after the other and at rest"
	case "storm":
		return "sessions whose leader is killed, until all are attached again; Lock of those that are"
	}
	return "waiters on 1,000 keys, served in order"
}

func writeCosts(b *strings.Builder, r Record) {
	columns := []string{"serial", "parallel64", "parallel1024", "parallel8192"}
	var rows [][]string
	for _, p := range r.measured(columns...) {
		if p.Kind != "mortise" && p.Kind != "etcd" {
			continue // its servers are other processes
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
	b.WriteString("Processor time and allocations for one pair, of the callers and all three members together, " +
		"where all are in one process:\n\n")
	writeTable(b, []string{"", "serial", "64 callers", "1,024 callers", "8,192 callers"}, rows)
}

func writePromises(b *strings.Builder, r Record) {
	b.WriteString("## What each promises\n\n")
	var rows [][]string
	for _, p := range r.Peers {
		version := p.Version
		if p.Missing != "" {
			version = "skipped: " + p.Missing
		}
		rows = append(rows, []string{p.Name, version, p.Promise})
	}
	writeTable(b, []string{"", "version", "promise"}, rows)
}
