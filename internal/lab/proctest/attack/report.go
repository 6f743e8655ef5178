//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// clocks is the largest assumed difference between the clocks of two histories.
const clocks = 200 * time.Millisecond

// moment is what the clients had done at one time, in the order of clients.
type moment struct {
	at    time.Time
	term  uint64
	done  map[string]int64
	fresh newcomers
}

// between returns what was measured between two moments.
func between(events []history.Event, from, to moment) phase {
	p := phase{length: to.at.Sub(from.at).Round(time.Second), elections: int(to.term - from.term),
		free: latencies(events, from.at, to.at), rates: map[string]float64{}}
	p.granted, p.failed, p.lost = outcomes(events, from.at, to.at)
	seconds := to.at.Sub(from.at).Seconds()
	for client, n := range to.done {
		p.rates[client] = float64(n-from.done[client]) / seconds
	}
	p.rates["callers of instances"] = float64(p.granted) / seconds
	return p
}

// print prints a table of the attacks, and one of the measurements.
func (f figures) print() {
	fmt.Printf("\n%-40s %12s %12s %9s %6s\n", "attack", "tried", "refused", "believed", "open")
	for _, kind := range sortedNames(f.kinds) {
		t := f.kinds[kind]
		fmt.Printf("%-40s %12d %12d %9d %6d\n", kind, t.Tried, t.Refused, t.Believed, t.Open)
	}
	fmt.Printf("\n%-28s %14s %10s %10s %7s %9s\n", "locks a second", "alone", "quiet", "attacked", "share",
		"of alone")
	for _, client := range sortedNames(f.quiet.rates) {
		all, q, a := f.free.rates[client], f.quiet.rates[client], f.attacked.rates[client]
		fmt.Printf("%-28s %14.1f %10.1f %10.1f %7.2f %9.2f\n", client, all, q, a, a/q, a/all)
	}
	fmt.Printf("\na free lock, quiet:    %s\na free lock, attacked: %s\n", f.quiet.free, f.attacked.free)
	fmt.Printf("elections: %d quiet, %d attacked\n", f.quiet.elections, f.attacked.elections)
	fmt.Printf("while attacked: %d calls granted, %d failed; %d new guests served, %d not; %d locks lost in all\n",
		f.attacked.granted, f.attacked.failed, f.newcomers.served, f.newcomers.failed, f.lost)
	for _, process := range sortedNames(f.resident) {
		fmt.Printf("%s: at most %d MiB resident\n", process, f.resident[process])
	}
}

func recorded(files []string) ([]history.Event, error) {
	var events []history.Event
	for i, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		own, err := history.Read(nil, file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("the history %s: %w", path, err)
		}
		for _, e := range own {
			e.Stream = i + 1
			events = append(events, e)
		}
	}
	return events, nil
}

type call struct {
	stream int
	op     uint64
}

// latencies returns the durations of calls that began in the given time, for keys that only one
// caller requests.
func latencies(events []history.Event, from, to time.Time) spread {
	began := map[call]int64{}
	var took []time.Duration
	for _, e := range events {
		id := call{e.Stream, e.Op}
		switch {
		case e.Kind == history.Call && strings.HasPrefix(e.Key, "probe/") && e.At >= from.UnixNano() &&
			e.At < to.UnixNano():
			began[id] = e.At
		case e.Kind == history.Return && began[id] != 0 && e.Outcome == history.Granted:
			took = append(took, time.Duration(e.At-began[id]))
			delete(began, id)
		}
	}
	if len(took) == 0 {
		return spread{}
	}
	slices.Sort(took)
	return spread{len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1]}
}

// outcomes counts the results of calls in the given time. A canceled call does not count as failed.
func outcomes(events []history.Event, from, to time.Time) (granted, failed, lost int) {
	for _, e := range events {
		switch {
		case e.At < from.UnixNano() || e.At >= to.UnixNano():
		case e.Kind == history.Return && e.Outcome == history.Granted:
			granted++
		case e.Kind == history.Return && e.Outcome == history.Failed && !strings.Contains(e.Err, "context"):
			failed++
		case e.Kind == history.Lost:
			lost++
		}
	}
	return granted, failed, lost
}
