package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

type options struct {
	quick    bool
	only     *regexp.Regexp
	peers    []string
	rounds   int
	duration time.Duration
	out      string
	from     string
	profile  string
	against  string
	named    string
	dir      string
	install  bool
	budget   bool
	callers  int

	child, member, alone, crowd, addresses string // set only in processes that this program starts
	index                                  int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.out != "" { // an error after half an hour would be too late
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return err
		}
	}
	switch {
	case o.child != "":
		var c childOptions
		if err := json.Unmarshal([]byte(o.child), &c); err != nil {
			return err
		}
		if c.Profile != "" {
			// sample allocations often enough to attribute them to functions, and rarely enough not
			// to slow the program down
			runtime.MemProfileRate = 16 << 10
		}
		result, err := measure(ctx, c)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	case o.member != "":
		p, ok := peerNamed(o.member)
		if !ok {
			return fmt.Errorf("there is no peer %q", o.member)
		}
		return serveMember(ctx, p, o.dir, strings.Split(o.addresses, ","), o.index, os.Stdin, os.Stdout)
	case o.alone != "":
		p, ok := peerNamed(o.alone)
		if !ok {
			return fmt.Errorf("there is no peer %q", o.alone)
		}
		return serveAlone(ctx, p, os.Stdin, os.Stdout)
	case o.crowd != "":
		return serveCrowd(ctx, o.crowd, os.Stdin, os.Stdout)
	case o.install:
		return install(ctx)
	case o.from != "":
		record, err := readRecord(o.from)
		if err != nil {
			return err
		}
		return publish(record, o.out)
	case o.budget && o.callers > 0:
		return crowdBudget(ctx, o, os.Stderr, os.Stdout)
	case o.budget:
		return budget(ctx, o, os.Stderr, os.Stdout)
	case o.against != "":
		return against(ctx, o, os.Stderr, os.Stdout)
	}
	record, err := rounds(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	return publish(record, o.out)
}

// What -quick measures by default, so that it ends within a minute.
const (
	quickPeers     = "mortise-dir-tls,wire-sync-tls,etcd,redis-always,mortise-tls,wire-tls,etcd-nosync,redis,postgres"
	quickWorkloads = "^(serial|parallel64|parallel1024|handover3)$"
)

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false,
		"one short round, with a tenth of the held locks and waiters; without -only and -peers, some of both")
	only := flags.String("only", "", "run only the workloads whose name matches; default: all")
	list := flags.String("peers", "", "measure only these, with commas; default: all that are there")
	flags.IntVar(&o.rounds, "rounds", 3, "run everything so many times, the peers by turns, and take medians")
	flags.DurationVar(&o.duration, "time", 2*time.Second, "per measurement")
	flags.StringVar(&o.out, "out", "",
		"write SPEED.md, speed.svg and speed.json to this directory, which is made if it is missing; default: the "+
			"text to standard output")
	flags.StringVar(&o.from, "from", "", "measure nothing: take this speed.json")
	flags.StringVar(&o.profile, "profile", "",
		"write profiles of mortise to this directory, a set for each workload; then figures mean nothing")
	flags.StringVar(&o.against, "against", "",
		"compare the rows of mortise with those of this program, which is the benchmark built at another commit")
	flags.StringVar(&o.named, "named", "the program given", "how the comparison names the other program")
	flags.BoolVar(&o.budget, "budget", false, "print what wakes up, calls the system and runs for one lock, hop by hop")
	flags.IntVar(&o.callers, "callers", 0,
		"with -budget: run so many callers instead of one, print the share of the time for which each goroutine runs, and "+
			"name the busiest")
	flags.StringVar(&o.dir, "dir", "",
		"where the peers' directories go; a disk, if the durable figures shall mean something; default: the "+
			"system's temporary directory")
	flags.BoolVar(&o.install, "install", false, "only install what is missing, with apt-get, as root")
	flags.StringVar(&o.child, "child", "", "used by the benchmark itself")
	flags.StringVar(&o.member, "member", "", "used by the benchmark itself")
	flags.StringVar(&o.alone, "alone", "", "used by the benchmark itself")
	flags.StringVar(&o.crowd, "crowd", "", "used by the benchmark itself")
	flags.StringVar(&o.addresses, "addresses", "", "used by the benchmark itself")
	flags.IntVar(&o.index, "index", 0, "used by the benchmark itself")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("what is %q?", flags.Args())
	}
	if o.callers < 0 || o.callers > 0 && !o.budget {
		return o, fmt.Errorf("-callers %d: give a positive number, together with -budget", o.callers)
	}
	if o.quick && *only == "" && *list == "" {
		*only, *list = quickWorkloads, quickPeers
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	if *list != "" {
		o.peers = strings.Split(*list, ",")
	}
	for _, name := range o.peers {
		if _, ok := peerNamed(name); !ok {
			return o, fmt.Errorf("there is no peer %q; there are %s", name, strings.Join(peerNames(), ", "))
		}
	}
	if o.quick {
		o.rounds, o.duration = 1, min(o.duration, 500*time.Millisecond)
	}
	return o, nil
}
