// Command mortise inspects a mortise cluster, diagnoses its problems, runs commands under a lock,
// ends holds by force, and serves programs in other languages.
//
// # Overview
//
// All commands except agent are guests (package internal/guest): they connect to instances of the
// cluster, with the cluster's secret or certificates, and do not count as instances. The command
// agent is a complete instance with an HTTP API for this machine.
//
// # Guarantees
//
// The command run executes a program only while it has reason to believe that its lock is held.
// README.md describes what happens when the lock is lost. The commands doctor, status and members
// need one instance that answers, but neither a leader nor a majority. They list every address that
// does not answer, with the reason.
//
// # Concurrency
//
// A command leaves no goroutine running when it ends.
//
// # Failure
//
// Every kind of failure has its own exit code, listed in exit.go and README.md. Errors are printed
// to standard error, results to standard output.
//
// # Limits
//
// The command top reads at most 10,000 keys. The agent allows 10,000 leases in total, and 1,000
// leases for each client. It serves programs with at most 64 different derived secrets at a time.
//
// # Refused alternative
//
// The command run does not start a whole node: package internal/guest explains how a node that
// exists for a second affects a cluster.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if os.Args[0] == watchdogName {
		os.Exit(watchdog(os.Args))
	}
	if os.Args[0] == devName {
		os.Exit(runDevInstance(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), append(notIgnored(os.Interrupt), syscall.SIGTERM)...)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Main runs one command line and returns its exit code. It reads and changes the environment of the
// process.
func Main(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 || len(args) == 1 && (args[0] == "help" || args[0] == "-h" || args[0] == "--help") {
		usage(out, commands())
		if len(args) == 0 {
			return exitUsage
		}
		return exitOK
	}
	if args[0] == "help" {
		args = []string{args[1], "-h"}
	}
	var names []string
	for _, cmd := range commands() {
		names = append(names, cmd.name)
		if cmd.name != args[0] {
			continue
		}
		c, run, err := parse(cmd, args[1:], out, errs)
		if err == flag.ErrHelp {
			help(c, cmd)
			return exitOK
		}
		if err == nil {
			err = run(ctx, c)
		}
		return report(errs, cmd.name, err)
	}
	return report(errs, "", noCommand(args[0], names))
}
