// Command mortise looks at a cluster of mortise, says what is wrong with it, runs a command under a lock, ends a lock that nobody will give
// back, and serves programs in other languages.
//
// # What it is
//
// All commands but agent are guests (internal/guest): they dial one instance of the cluster or several, with the cluster's own secret or
// certificates, and are counted by nobody. So a run that lives for a second neither gets a vote nor takes part in founding a group. agent
// is a whole instance, with an HTTP door on this machine.
//
// # Guarantees
//
// run: the command runs only while its lock is believed to be held; README.md says what happens at the loss. doctor, status and members need no
// leader and no majority: one instance that answers is enough, and what does not answer is told with its reason.
//
// # Concurrency
//
// Each command is one goroutine and those of the packages that it stands on; nothing is left running when it ends.
//
// # Failure
//
// Every way to fail has an exit code of its own, in exit.go and README.md. Errors go to standard error, answers to standard output.
//
// # Limits
//
// top looks at 10,000 keys. The agent has 10,000 leases, and 1,000 for each client. It serves 64 derived
// secrets of programs at a time.
//
// # Refused alternative
//
// run as a whole node, as agent is: internal/guest says what a node that lives for a second does to a cluster.
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

func commands() []command {
	return []command{
		{name: "run", args: "KEY -- COMMAND...", about: "take the lock, run the command, give the lock back", examples: "run cron/report -- ./report.sh\nrun -n cron/report -- ./report.sh", run: runUnderLock, flags: runFlags, program: true},
		{name: "ls", args: "[PREFIX]", about: "keys that are held or waited for", examples: "ls\nls orders/ -o json", run: list},
		{name: "get", args: "KEY", about: "who holds a key, who waits for it, in order", examples: "get orders/42", run: get},
		{name: "top", args: "[PREFIX]", about: "the keys that are waited for most, held longest, change hands most; live", examples: "top -by held\ntop orders/ -count 1", run: top, flags: topFlags},
		{name: "watch", args: "[PREFIX]", about: "what happens to keys, a line each", examples: "watch orders/", run: watch, flags: watchFlags},
		{name: "audit", about: "the last holds that ended by force, or whose holder fell silent", examples: "audit -o json", run: audit},
		{name: "members", about: "the members of the group, as the leader has them; without one, the instances that answer", examples: "members -n 0", run: members, flags: membersFlags},
		{name: "sessions", about: "the sessions of the group: since when, how long silent, how many keys each holds", examples: "sessions -n 0", run: sessions, flags: membersFlags},
		{name: "status", about: "the group as every instance sees it", examples: "status -join orders-0:7947,orders-1:7947 -secret-file /run/secrets/lock", run: status},
		{name: "doctor", args: "[KEY]", about: "why there is no leader, or why it hangs, and the next safe step", examples: "doctor\ndoctor orders/42", run: doctor, flags: doctorFlags},
		{name: "data", args: "get|put|rm KEY [DATA]", about: "read, change or take away the data of a key", examples: "data get orders/42\ndata put orders/42 '{\"at\":7}'", run: data, flags: dataFlags},
		{name: "ping", args: "[PREFIX]", about: "measure how long a lock and its unlock take from here", examples: "ping -n 20", run: ping, flags: pingFlags},
		{name: "unlock", args: "--force KEY --token T --reason TEXT", about: "end a hold that will not end by itself", examples: "unlock --force orders/42 --token 4611686018427388141 --reason \"orders-2 hangs, restarted\"", run: unlock, flags: unlockFlags},
		{name: "recover", args: "GROUP", about: "give up a group with directories whose majority is lost for good", examples: "recover 0123456789abcdef", run: recoverGroup},
		{name: "secret", args: "[-allow RIGHT]... [-member] [-for NAME] [-until WHEN]", about: "print a new secret, or one with fewer rights that is derived from the cluster's", examples: "secret\nsecret -secret-file root -allow 'lock cron/*' -for cron-host -until 2160h", run: secret, flags: secretFlags},
		{name: "agent", about: "be an instance, with an HTTP door for programs in other languages", examples: "agent -join orders-0:7947 -secret-file /run/secrets/lock", run: agent, flags: agentFlags, instance: true},
		{name: "completion", args: "bash|zsh|fish", about: "print a script that completes commands and flags in that shell", examples: "completion bash", run: completion},
		{name: "version", about: "print the version of this command, and of Go", examples: "version -o json", run: version},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Main runs one command line and returns its exit code. It reads and changes the environment of the process.
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
