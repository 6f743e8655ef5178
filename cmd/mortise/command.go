package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// action runs a command.
type action func(ctx context.Context, c *call) error

type command struct {
	name, args, about string
	examples          string                     // one on each line, without the word mortise
	run               action                     // nil if the command has options
	options           func(*flag.FlagSet) action // defines flags; the action has their values
	instance          bool                       // accepts the flags of an instance
	program           bool                       // a program may follow --
	alone             bool                       // has a cluster of its own: no flags that describe one
}

// withOptions returns the field options of a command that runs with options of the type O.
func withOptions[O any](flags func(*O, *flag.FlagSet), run func(context.Context, *call, O) error,
) func(*flag.FlagSet) action {
	return func(fs *flag.FlagSet) action {
		o := new(O)
		flags(o, fs)
		return func(ctx context.Context, c *call) error { return run(ctx, c, *o) }
	}
}

type flagFor struct{ name, variable, about string }

func guestFlags() []flagFor {
	return []flagFor{
		{"join", "JOIN", "where instances are: host:port, dns:///host:port, srv:///name, file:///path, separated by commas"},
		{"cluster", "CLUSTER", "label of the cluster (mortise)"},
		{"name", "NAME", "name that others see (the host name)"},
		{"secret-file", "SECRET_FILE",
			"a file with the cluster's secret, or one derived from it; or set MORTISE_SECRET"},
		{"tls-cert", "TLS_CERT_FILE", "certificate of this program; replaces the secret"},
		{"tls-key", "TLS_KEY_FILE", "private key of that certificate"},
		{"tls-ca", "TLS_CA_FILE", "the certificate authorities of the instances"},
		{"tls-peers", "TLS_PEERS", "names that only instances' certificates carry: DNS names or SPIFFE IDs, separated by " +
			"commas"},
		{"ttl", "SESSION_TTL", "how long locks last after the last renewal (10s)"},
	}
}

func nodeFlags() []flagFor {
	return []flagFor{
		{"bind", "BIND", "address to listen on for the other instances (:7947)"},
		{"advertise", "ADVERTISE", "address at which they reach this one"},
		{"replicas", "REPLICAS", "how many instances you run in total"},
		{"founders", "FOUNDERS", "names of the instances that found the group and vote, separated by commas"},
		{"voters", "VOTERS", "how many vote (3)"},
		{"zone", "ZONE", "failure domain"},
		{"run-dir", "RUN_DIR", "directory that outlives the process, without -dir: a restart frees its locks at once"},
		{"dir", "DIR", "directory for the replicated state; without it the state is in memory"},
		{"tls-guests-file", "TLS_GUESTS_FILE",
			"a file with names in other certificates and their rights: one name and one right on each line"},
		{"grace", "GRACE", "how long a new group grants nothing (the TTL), or none"},
	}
}

// parse parses the arguments of a command. Before --, flags and words can be in any order.
func parse(cmd command, args []string, out, errs io.Writer) (*call, action, error) {
	c := &call{out: out, errs: errs, environ: os.Environ(), changed: map[string]string{}}
	fs, run := cmd.flagsOf(c)
	before, after := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		before, after = args[:i], args[i+1:]
	}
	for len(before) > 0 {
		if err := fs.Parse(before); err == flag.ErrHelp {
			return c, nil, err
		} else if err != nil {
			return nil, nil, badFlag(cmd.name, fs, err)
		}
		if before = fs.Args(); len(before) > 0 {
			c.words, before = append(c.words, before[0]), before[1:]
		}
	}
	fs.Visit(func(f *flag.Flag) { c.prefixSet = c.prefixSet || f.Name == "env-prefix" })
	if cmd.program {
		c.program = after
	} else {
		c.words = append(c.words, after...)
	}
	return c, run, nil
}

// flagsOf returns the flags of a command, which change c, and what runs it after they are parsed.
func (cmd command) flagsOf(c *call) (*flag.FlagSet, action) {
	fs := flag.NewFlagSet("mortise "+cmd.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if !cmd.alone {
		cmd.describingFlags(c, fs)
	}
	fs.Func("o", "output: table or json (table)", func(v string) error {
		if v != "table" && v != "json" {
			return fmt.Errorf("want table or json")
		}
		c.json = v == "json"
		return nil
	})
	if cmd.options != nil {
		return fs, cmd.options(fs)
	}
	return fs, cmd.run
}

// describingFlags adds the flags that describe the cluster, and those for questions to it.
func (cmd command) describingFlags(c *call, fs *flag.FlagSet) {
	list := guestFlags()
	if cmd.instance {
		list = append(list, nodeFlags()...)
	}
	for _, f := range list {
		fs.Func(f.name, f.about+"; "+prefix+"_"+f.variable,
			func(v string) error { c.changed[f.variable] = v; return nil })
	}
	fs.BoolFunc("insecure", "the cluster has neither secret nor certificates; "+prefix+"_INSECURE",
		func(string) error { c.changed["INSECURE"] = "true"; return nil })
	fs.StringVar(&c.prefix, "env-prefix", prefix,
		"prefix of the variables that describe the cluster; with a service's prefix, as ORDERS_LOCK, "+
			"the command uses the service's own")
	fs.StringVar(&c.context, "context", "",
		"the name of a cluster in the file of contexts; "+prefix+"_CONTEXT, and "+prefix+"_CONTEXTS for the file")
	fs.DurationVar(&c.within, "timeout", 3*time.Second, "how long to look for an answer")
}
