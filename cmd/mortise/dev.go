package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
)

// This file is the command dev: a cluster on this machine, to see how mortise works. Its instances
// are processes of their own, so killing and pausing them is real. This process is a member of the
// group that never votes. It serves the page and the HTTP API of an agent.

const maxDev = 9 // instances, one digit each

func devCommand() command {
	return command{
		name:     "dev",
		about:    "start a cluster on this machine, with its page and an agent, and keys that kill, cut off and pause",
		examples: "dev\ndev -n 5 -listen 127.0.0.1:7948 -work=false",
		options:  withOptions(devFlags, dev), alone: true,
	}
}

type devOptions struct {
	n          int
	work, keys bool
	listen     string
	try        string
}

func devFlags(o *devOptions, fs *flag.FlagSet) {
	fs.IntVar(&o.n, "n", 3, "how many instances: 1, 3, 5, 7 or 9")
	fs.BoolVar(&o.work, "work", true, "the instances take turns under the lock "+devKey)
	fs.BoolVar(&o.keys, "keys", false, "read keys from standard input although it is no terminal")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback address of the page and of the agent; port 0 is a free one")
	fs.StringVar(&o.try, "try", "", "also serve the simulation, from a directory that scripts/try -o has written")
}

func (o devOptions) check(c *call) error {
	switch {
	case len(c.words) > 0:
		return usageError("dev takes no words, only flags: " + strings.Join(c.words, " "))
	case o.n < 1 || o.n > maxDev:
		return usageError(fmt.Sprintf("-n is %d: want 1, 3, 5, 7 or 9", o.n))
	case o.n%2 == 0:
		return usageError(fmt.Sprintf("-n is %d: %d of %d must agree, so no more of them may fail than of %d; "+
			"want 1, 3, 5, 7 or 9", o.n, o.n/2+1, o.n, o.n-1))
	case strings.HasPrefix(o.listen, "unix:"):
		return usageError("-listen is a socket in the file system: a browser needs a loopback address with a port")
	case o.try != "":
		if _, err := os.Stat(filepath.Join(o.try, "mortise.wasm")); err != nil {
			return usageError(fmt.Sprintf("-try: %v: scripts/try -o %s writes the files of the simulation", err, o.try))
		}
	}
	return nil
}

func dev(ctx context.Context, c *call, o devOptions) (err error) {
	if err := o.check(c); err != nil {
		return err
	}
	listener, err := listenFor(o.listen)
	if err != nil {
		return usageError("-listen: " + err.Error())
	}
	defer func() { _ = listener.Close() }()                    // after hosting has closed it this fails
	if closed := notIgnored(syscall.SIGHUP); len(closed) > 0 { // the terminal is closed
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, closed...)
		defer stop()
	}
	dir, err := os.MkdirTemp("", "mortise-dev-")
	if err != nil {
		return fmt.Errorf("dev has no place for the directories of the instances: %w; set TMPDIR to a directory that can "+
			"be written", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	instances, err := o.instances(dir)
	if err != nil {
		return err
	}
	// Linux ends the instances when the thread that has started them ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := newDevShow(c, o.keys || isTerminal(os.Stdin) && isTerminal(c.out), instances)
	defer s.end()
	for _, p := range s.group.parts {
		if err := p.start(s.news); err != nil {
			return err
		}
	}
	h, err := devHosting(s, listener)
	if err != nil {
		return err
	}
	h.try = o.try
	return h.run(ctx, func(node *mortise.Node, served <-chan error) error {
		if err := tellDevStart(s, listener.Addr().String(), o.try != ""); err != nil {
			return err
		}
		return s.run(ctx, node, served)
	})
}

// instances returns the configurations of the instances.
func (o devOptions) instances(dir string) ([]devInstance, error) {
	addresses, err := freeAddresses(o.n)
	if err != nil {
		return nil, err
	}
	secret := credentials.GenerateSecret()
	var names []string
	for i := range o.n {
		names = append(names, fmt.Sprintf("dev-%d", i+1))
	}
	var all []devInstance
	for i, name := range names {
		all = append(all, devInstance{Name: name, Bind: addresses[i], Dir: filepath.Join(dir, name), Secret: secret,
			Join: addresses, Founders: names, Voters: min(o.n, devVoters), Work: o.work})
	}
	return all, nil
}

// freeAddresses returns free loopback addresses. Their ports are below those that systems give to
// outgoing connections, so that they are still free when an instance is started again.
func freeAddresses(n int) (found []string, last error) {
	for range 100 * n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err != nil {
			last = err
			continue
		}
		defer func() { _ = l.Close() }() // until all are found, so that no two are equal
		if found = append(found, l.Addr().String()); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%d free ports from 20000 on were not found: %w", n, last)
}

// devHosting returns the member of the group that this process is. Its derived secret keeps it from
// voting, so the votes are those of the instances that the keys kill.
func devHosting(s *devShow, listener net.Listener) (hosting, error) {
	one := s.group.parts[0].devInstance
	rights, err := capability.Build("dev", time.Time{}, "member")
	if err != nil {
		return hosting{}, err
	}
	derived, err := credentials.DeriveSecret(one.Secret, devLabel, rights.Text())
	if err != nil {
		return hosting{}, err
	}
	given := mortise.Config{Name: "agent", Cluster: devLabel, Join: one.Join, Founders: one.Founders, Secret: one.Secret,
		Voters: one.Voters, SessionTTL: devTTL, Logger: s.logger()}
	own := given
	own.Secret = derived
	return hosting{config: own, given: given, listeners: []net.Listener{listener}, changed: s.changed,
		leave: func(n *mortise.Node, _ context.Context) error { return n.Close() }}, nil
}

type devStart struct {
	Page, Agent, Secret string
	Try                 string `json:",omitempty"`
	Join, Founders      []string
	Voters              int
	SessionTTL          time.Duration
}

// tellDevStart says where everything is.
func tellDevStart(s *devShow, at string, tries bool) error {
	one, page, try := s.group.parts[0].devInstance, "http://"+at+pagePath, ""
	if tries {
		try = "http://" + at + tryPath
	}
	if s.group.c.json {
		return s.group.c.show(devStart{page, at, one.Secret, try, one.Join, one.Founders, one.Voters, devTTL})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d instances start on this machine, %s. Ctrl-C ends them and removes their directories.\n\n",
		len(s.group.parts), strings.Join(one.Founders, ", "))
	fmt.Fprintf(&b, "the page, in a browser:\n  %s\n\n", page)
	if tries {
		fmt.Fprintf(&b, "a simulated group, in a browser:\n  %s\n\n", try)
	}
	fmt.Fprintf(&b, "a lock by HTTP, for 20 seconds:\n"+
		"  lease=$(curl -sS %[1]s/v1/leases --json '{\"ttl_seconds\":20,\"name\":\"curl\"}' | "+
		"sed 's/.*\"lease\":\"\\([^\"]*\\)\".*/\\1/')\n"+
		"  curl -sS %[1]s/v1/lock --json '{\"lease\":\"'$lease'\",\"key\":\"%[2]s\"}'\n\n", at, devKey)
	fmt.Fprintf(&b, "a Go program of yours joins with\n  mortise.Config{\n    Name:       \"mine\", // another one in "+
		"each program\n    Bind:       \"127.0.0.1:0\",\n    Join:       %s,\n    Founders:   %s,\n    Voters:     %d,\n"+
		"    Secret:     %q,\n    SessionTTL: %d * time.Second,\n  }\n\n",
		goList(one.Join), goList(one.Founders), one.Voters, one.Secret, int(devTTL.Seconds()))
	fmt.Fprintf(&b, "other commands, as mortise status and mortise top, in another terminal after\n"+
		"  export MORTISE_JOIN=%s MORTISE_SECRET=%s\n\n", strings.Join(one.Join, ","), one.Secret)
	if s.keys {
		b.WriteString(keysText(len(s.group.parts)) + "\n")
	}
	_, err := io.WriteString(s.group.c.out, b.String())
	return err
}

func goList(texts []string) string {
	return fmt.Sprintf("[]string{%s}", strings.Join(quoted(texts), ", "))
}

func quoted(texts []string) (all []string) {
	for _, text := range texts {
		all = append(all, fmt.Sprintf("%q", text))
	}
	return all
}
