// Command mortise-judge checks recorded histories of lock operations. See package judge, and
// Config.History of mortise.
//
// It exits with 0 if the histories are right, with 1 if they are wrong or cannot be judged, and
// with 2 if they cannot be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/judge"
)

func main() { os.Exit(run()) }

func run() int {
	var o judge.Options
	flag.DurationVar(&o.Uncertainty, "uncertainty", 0,
		"the largest difference of two clocks of the history: 0 on one machine, some 10ms with NTP")
	flag.DurationVar(&o.Settle, "settle", time.Minute,
		"how long the state may keep what has ended for its caller: more than a lease and any time without a leader")
	flag.BoolVar(&o.Settled, "settled", false,
		"the recording goes on until everything was over: what is missing at its end is a violation")
	flag.DurationVar(&o.Timeout, "timeout", 30*time.Second, "how long porcupine may search")
	flag.StringVar(&o.HTML, "html", "", "write a picture of the first wrong key to this file")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(),
			"usage: mortise-judge [flags] FILE...\n\n"+
				"The files must be the histories (Config.History) of all instances, from all their starts.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		return 2
	}
	events, err := judge.Files(flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mortise-judge:", err)
		return 2
	}
	fmt.Println(summary(events))
	verdicts := 0
	for _, j := range [...]struct {
		name  string
		judge func([]history.Event, judge.Options) error
	}{{"witness", judge.Witness}, {"porcupine", judge.Porcupine}} {
		began := time.Now()
		err := j.judge(events, o)
		took := time.Since(began).Round(time.Millisecond)
		switch {
		case err == nil:
			fmt.Printf("%-10s right (%v)\n", j.name, took)
			continue
		case errors.Is(err, judge.ErrUnknown):
			fmt.Printf("%-10s unknown (%v): %v\n", j.name, took, err)
		default:
			fmt.Printf("%-10s WRONG (%v): %v\n", j.name, took, err)
		}
		verdicts = 1
	}
	return verdicts
}

func summary(events []history.Event) string {
	counts := map[history.Kind]int{}
	keys := map[string]bool{}
	from, to := int64(0), int64(0)
	for i, e := range events {
		counts[e.Kind]++
		if e.Key != "" {
			keys[e.Key] = true
		}
		if i == 0 {
			from, to = e.At, e.At
		}
		from, to = min(from, e.At), max(to, e.At)
	}
	return fmt.Sprintf("%d events over %v: %d recorders, %d keys, %d calls, %d locks lost", len(events),
		time.Duration(to-from).Round(time.Millisecond),
		counts[history.Header], len(keys), counts[history.Call], counts[history.Lost])
}
