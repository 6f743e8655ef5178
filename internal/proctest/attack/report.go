//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// clocks is the largest assumed difference between the clocks of two histories.
const clocks = 200 * time.Millisecond

// report judges the recorded histories and prints the figures. Its error names an exceeded limit.
func (s *siege) report(quietFrom, attackFrom, attackTo time.Time) error {
	events, err := s.recorded()
	if err != nil {
		return err
	}
	if err := history.Judge(events, history.Options{Uncertainty: clocks, Settle: 45 * time.Second}); err != nil {
		s.fault("the history is not right: %v", err)
	}
	fmt.Printf("attacked for %v, after %v of quiet; %d events recorded\n",
		attackTo.Sub(attackFrom).Round(time.Second), attackFrom.Sub(quietFrom).Round(time.Second), len(events))
	for _, kind := range kinds() {
		if !strings.Contains(kind, s.only) {
			continue
		}
		t := s.tried[kind]
		fmt.Printf("  %-40s %9d tried, %9d refused or cut off, %d believed\n", kind, t.Tried, t.Refused, t.Believed)
		if t.Tried == 0 {
			s.fault("the attack %q was never tried", kind)
		}
		if t.Believed > 0 {
			s.fault("the attack %q was believed %d times", kind, t.Believed)
		}
	}
	quiet, attacked := latencies(events, quietFrom, attackFrom), latencies(events, attackFrom, attackTo)
	fmt.Printf("a free lock, quiet:    %s\na free lock, attacked: %s\n", quiet, attacked)
	switch {
	case quiet.count == 0 || attacked.count == 0:
		s.fault("no free lock was granted")
	case attacked.p99 >= s.p99:
		s.fault("p99 was %v while attacked, and the limit is %v", attacked.p99, s.p99)
	case s.ratio > 0 && attacked.p99 >= time.Duration(s.ratio)*quiet.p99:
		s.fault("p99 was %v quiet and %v attacked, and the limit is %d times", quiet.p99, attacked.p99, s.ratio)
	}
	granted, failed, lost := outcomes(events, attackFrom, attackTo)
	fmt.Printf("while attacked: %d calls granted, %d failed, %d locks lost, %d terms\n", granted, failed, lost,
		len(s.terms))
	for _, v := range s.victims {
		fmt.Printf("instance %s: at most %d MiB resident\n", v.name, v.mib())
		if v.mib() > s.rss {
			s.fault("instance %s had %d MiB resident, and the limit is %d", v.name, v.mib(), s.rss)
		}
	}
	if len(s.faults) > 0 {
		return errors.New("the campaign has failed:\n  " + strings.Join(s.faults, "\n  "))
	}
	fmt.Println("no lock granted twice, no voter lost, no instance ended")
	return nil
}

func (s *siege) recorded() ([]history.Event, error) {
	var events []history.Event
	for i, v := range s.victims {
		file, err := os.Open(filepath.Join(v.dir, v.name+".jsonl"))
		if err != nil {
			return nil, err
		}
		own, err := history.Read(nil, file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("the history of %s: %w", v.name, err)
		}
		for _, e := range own {
			e.Stream = i + 1
			events = append(events, e)
		}
	}
	return events, nil
}

type spread struct {
	count         int
	p50, p99, max time.Duration
}

func (s spread) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d calls, p50 %v, p99 %v, max %v", s.count, round(s.p50), round(s.p99), round(s.max))
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
