package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
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
}

func (c *call) config() (mortise.Config, error) {
	if err := c.useContext(); err != nil {
		return mortise.Config{}, err
	}
	// ConfigFromEnv would reject these variables, which belong to the command.
	for _, own := range [...]string{"CONTEXT", "CONTEXTS", "TOKEN", "KEY", "BEAT", "LISTEN", "OBSERVE", "CONSOLES",
		"AGENT_TOKEN", "AGENT_TOKEN_FILE"} {
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

// useContext sets the variables of the chosen context, except those that a flag replaces. It fails
// if a variable of the environment contradicts the context.
func (c *call) useContext() error {
	name := cmp.Or(c.context, os.Getenv(prefix+"_CONTEXT"))
	if name == "" {
		return nil
	}
	path, err := contextsPath()
	if err != nil {
		return usageError(err.Error())
	}
	chosen, err := readContext(path, name)
	if err != nil {
		return usageError(err.Error())
	}
	if chosen.EnvPrefix != "" && !c.prefixSet {
		c.prefix = chosen.EnvPrefix
	}
	if err := c.apply(name, chosen.variables(filepath.Dir(path))); err != nil {
		return usageError(err.Error())
	}
	if file := c.changed["SECRET_FILE"]; file != "" {
		c.warnOfOthers(file)
	}
	return nil
}

// apply sets the variables that no flag replaces. There are three kinds of security: a secret,
// certificates and none. A flag that chooses one kind also replaces the variables of the other
// kinds.
func (c *call) apply(name string, variables map[string]string) error {
	chosen := map[string]bool{}
	for variable := range c.changed {
		chosen[security(variable)] = true
	}
	delete(chosen, "")
	for _, variable := range slices.Sorted(maps.Keys(variables)) {
		kind := security(variable)
		if c.changed[variable] != "" || kind != "" && len(chosen) > 0 && !chosen[kind] {
			continue
		}
		others := []string{variable}
		if variable == "SECRET_FILE" {
			others = append(others, "SECRET")
		}
		for _, other := range others {
			set := strings.TrimSpace(os.Getenv(c.prefix + "_" + other))
			if set != "" && (set != variables[variable] || other != variable) {
				return fmt.Errorf("the context %q and the variable %s_%s contradict each other: "+
					"unset the variable, or choose no context", name, c.prefix, other)
			}
		}
		c.changed[variable] = variables[variable]
	}
	return nil
}

// warnOfOthers warns if every user of this machine may read or replace a file that contains
// secrets. It does not check the permissions of the file's group.
func (c *call) warnOfOthers(path string) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return
	}
	if perm := info.Mode().Perm(); perm&0o007 != 0 {
		c.warn("context", fmt.Errorf("%s has the mode %04o: every user of this machine can read or replace the secret; "+
			"run chmod 600 %[1]s, and make a new one", path, perm))
	}
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
