package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/plain"
)

type secretOptions struct {
	allow  []string
	name   string
	until  string
	member bool
}

func secretFlags(o *secretOptions, fs *flag.FlagSet) {
	fs.Func("allow", "a right of the derived secret: read, write, lock or force, and a key or a prefix and *, "+
		"as in 'lock cron/*'; may be repeated", func(v string) error {
		o.allow = append(o.allow, v)
		return nil
	})
	fs.BoolVar(&o.member, "member", false, "derive a secret that starts an instance, which locks "+
		"everything and never founds, votes or serves")
	fs.StringVar(&o.name, "for", "", "name of the user of the derived secret, as audit logs show it")
	fs.StringVar(&o.until, "until", "", "when the derived secret ends: a time as 2027-01-31T18:00:00Z, "+
		"or how long from now, as 720h (never)")
}

func secret(_ context.Context, c *call, o secretOptions) error {
	if len(c.words) > 0 {
		return usageError("too many words: write each right in quotes after its own -allow, as in -allow 'lock cron/*'")
	}
	if len(o.allow) == 0 && !o.member {
		if o.name != "" || o.until != "" {
			return usageError("-for and -until belong to a derived secret: say with -allow or -member what it allows")
		}
		return c.tell(credentials.GenerateSecret(), "")
	}
	if o.name == "" {
		return usageError("-for is missing: name the user of the derived secret; audit logs show the name")
	}
	until, err := o.end(time.Now())
	if err != nil {
		return err
	}
	words := o.allow
	if o.member {
		words = append(words, "member")
	}
	rights, err := capability.Build(o.name, until, words...)
	if err != nil {
		return usageError(err.Error())
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	if config.Cluster == "" {
		config.Cluster = "mortise" // the default of Start
	}
	if config.Secret == "" {
		return usageError("the root secret is missing: name its file by -secret-file, or set MORTISE_SECRET")
	}
	derived, err := credentials.DeriveSecret(config.Secret, config.Cluster, rights.Text())
	if err != nil {
		return usageError(err.Error())
	}
	return c.tell(derived, rights.Text())
}

func (o secretOptions) end(now time.Time) (time.Time, error) {
	if o.until == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(o.until); err == nil && d > 0 {
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339, o.until)
	if err != nil {
		return time.Time{}, usageError("-until " + plain.Shell(o.until) + " is neither a time, like " +
			"2027-01-31T18:00:00Z, nor a positive duration, like 720h")
	}
	if !t.After(now) {
		return time.Time{}, usageError("-until " + plain.Shell(o.until) + " has passed")
	}
	return t, nil
}

type secretShown struct {
	Secret     string
	Capability string `json:",omitempty"`
}

// tell prints only the secret to standard output, so that it can be redirected to a file. It prints
// the rights to standard error.
func (c *call) tell(secret, rights string) error {
	if c.json {
		return c.show(secretShown{secret, rights})
	}
	fmt.Fprintln(c.out, secret)
	if rights != "" {
		fmt.Fprintln(c.errs, "its rights:\n  "+strings.ReplaceAll(strings.TrimSpace(rights), "\n", "\n  "))
	}
	return nil
}
