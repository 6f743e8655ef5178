package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
)

type call struct {
	out, errs io.Writer
	words     []string
	program   []string // the words after --, for mortise run
	environ   []string // environment before flags change it; run passes it to its program

	prefix    string
	prefixSet bool
	context   string // a name in the file of contexts; empty means MORTISE_CONTEXT, or no context
	json      bool
	within    time.Duration
	changed   map[string]string // variables set by flags or a context, named without the prefix

	run     runOptions
	top     topOptions
	members membersOptions
	watch   watchOptions
	unlock  unlockOptions
	agent   agentOptions
	secret  secretOptions
	ping    pingOptions
	doctor  doctorOptions
	data    dataOptions
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
		{"dir", "DIR", "directory for the replicated state; without it the state is in memory"},
		{"tls-guests-file", "TLS_GUESTS_FILE",
			"a file with names in other certificates and their rights: one name and one right on each line"},
		{"grace", "GRACE", "how long a new group grants nothing (the TTL), or none"},
	}
}

// parse parses the arguments of a command. Before --, flags and words can be in any order.
func parse(cmd command, args []string, out, errs io.Writer) (*call, error) {
	c := &call{out: out, errs: errs, environ: os.Environ(), changed: map[string]string{}}
	fs := c.flagsOf(cmd)
	before, after := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		before, after = args[:i], args[i+1:]
	}
	for len(before) > 0 {
		if err := fs.Parse(before); err == flag.ErrHelp {
			return c, err
		} else if err != nil {
			return nil, badFlag(cmd, fs, err)
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
	return c, nil
}

func (c *call) flagsOf(cmd command) *flag.FlagSet {
	fs := flag.NewFlagSet("mortise "+cmd.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
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
	fs.Func("o", "output: table or json (table)", func(v string) error {
		if v != "table" && v != "json" {
			return fmt.Errorf("want table or json")
		}
		c.json = v == "json"
		return nil
	})
	if cmd.flags != nil {
		cmd.flags(c, fs)
	}
	return fs
}

func (c *call) config() (mortise.Config, error) {
	if err := c.useContext(); err != nil {
		return mortise.Config{}, err
	}
	// ConfigFromEnv would reject these variables, which belong to the command.
	for _, own := range [...]string{"CONTEXT", "CONTEXTS", "TOKEN", "KEY", "LISTEN", "OBSERVE", "AGENT_TOKEN",
		"AGENT_TOKEN_FILE"} {
		_ = os.Unsetenv(prefix + "_" + own)
	}
	if c.changed["SECRET_FILE"] != "" {
		_ = os.Unsetenv(c.prefix + "_SECRET")
	}
	for name, value := range c.changed {
		if err := os.Setenv(c.prefix+"_"+name, value); err != nil {
			return mortise.Config{}, err
		}
	}
	config, err := mortise.ConfigFromEnv(c.prefix)
	if err != nil {
		return config, usageError(err.Error())
	}
	if config.Name == "" {
		config.Name, _ = os.Hostname()
	}
	return config, nil
}

func (c *call) guest() (*guest.Guest, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	if len(config.Join) == 0 {
		return nil, usageError("where is the cluster? Name an instance with -join host:port, or set " + c.prefix +
			"_JOIN")
	}
	g, err := guest.Open(config)
	if err != nil {
		return nil, usageError(err.Error())
	}
	return g, nil
}

func (c *call) word(fallback string) (string, error) {
	switch len(c.words) {
	case 0:
		return fallback, nil
	case 1:
		return c.words[0], nil
	}
	return "", usageError("too many words: " + strings.Join(c.words, " "))
}

func (c *call) key() (string, error) {
	key, err := c.word("")
	if err == nil && key == "" {
		err = usageError("which key? mortise ls lists them")
	}
	return key, err
}

func put[Q, A any](ctx context.Context, c *call, g *guest.Guest, method guest.Method[Q, A], q *Q) (*A, error) {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	return guest.Put(ctx, g, method, q)
}

func (c *call) show(v any) error {
	line, err := dialect(v)
	if err != nil {
		return err
	}
	_, err = c.out.Write(plain.JSON(line))
	return err
}

// printf formats like fmt.Printf, but escapes each text in args, because texts may come from other
// processes.
func (c *call) printf(format string, args ...any) error {
	_, err := io.WriteString(c.out, plain.Sprintf(format, args...))
	return err
}

func (c *call) warn(command string, err error) {
	fmt.Fprintf(c.errs, "mortise %s: %s\n", command, plain.Lines(sentence(err.Error(), toOperators)))
}

func (c *call) table(heading string, rows [][]string) error { return table(c.out, heading, rows) }

func table(out io.Writer, heading string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(heading, " ", "\t"))
	for _, r := range rows {
		for i := range r {
			if r[i] = plain.Text(r[i]); r[i] == "" {
				r[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

func myself() string {
	name, host := "unknown user", "unknown host"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return plain.Cut(plain.Text(name+"@"+host), 100)
}

func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}
