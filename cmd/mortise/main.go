// Command mortise looks at a cluster of mortise, says what is wrong with it, runs a command under a
// lock, ends a lock that nobody will give back, and serves programs in other languages.
//
// # What it is
//
// All commands but agent are guests (internal/guest): they dial one instance of the cluster or
// several, with the cluster's own secret or certificates, and are counted by nobody. So a run that
// lives for a second neither gets a vote nor takes part in founding a group. agent is a whole
// instance, with an HTTP door on this machine.
//
// # Guarantees
//
// run: the command runs only while its lock is believed to be held; README.md says what happens at
// the loss. doctor, status and members need no leader and no majority: one instance that answers is
// enough, and what does not answer is told with its reason.
//
// # Concurrency
//
// Each command is one goroutine and those of the packages that it stands on; nothing is left
// running when it ends.
//
// # Failure
//
// Every way to fail has an exit code of its own, in exit.go and README.md. Errors go to standard
// error, answers to standard output.
//
// # Limits
//
// top looks at 10,000 keys. The agent has 10,000 leases, and 1,000 for each client. It serves 64
// derived secrets of programs at a time.
//
// # Refused alternative
//
// run as a whole node, as agent is: internal/guest says what a node that lives for a second does to
// a cluster.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is one word behind mortise.
type command struct {
	name, args, about string
	examples          string // command lines, one a line, without the word mortise
	run               func(ctx context.Context, c *call) error
	flags             func(c *call, fs *flag.FlagSet) // its own; nil: none
	instance          bool                            // it takes the flags of an instance
	program           bool                            // what stands behind -- is a program, not more words
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Main runs one command line and returns its exit code. It reads and changes the environment of the
// process.
func Main(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 || len(args) == 1 && (args[0] == "help" || args[0] == "-h" || args[0] == "--help") {
		usage(out)
		if len(args) == 0 {
			return exitUsage
		}
		return exitOK
	}
	if args[0] == "help" {
		args = []string{args[1], "-h"}
	}
	for _, cmd := range commands() {
		if cmd.name != args[0] {
			continue
		}
		c, err := parse(cmd, args[1:], out, errs)
		if err == flag.ErrHelp {
			c.help(cmd)
			return exitOK
		}
		if err == nil {
			err = cmd.run(ctx, c)
		}
		return report(errs, cmd.name, err)
	}
	return report(errs, "", noCommand(args[0]))
}
