package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"regexp"
	"time"

	"github.com/mortise-lock/mortise"
)

type doctorOptions struct {
	watch bool
	every time.Duration
}

func doctorFlags(c *call, fs *flag.FlagSet) {
	fs.BoolVar(&c.doctor.watch, "watch", false,
		"repeat until Ctrl-C; the exit code is that of the last verdict")
	fs.DurationVar(&c.doctor.every, "every", 5*time.Second, "with -watch: the time between two checkups")
}

// watchDoctor makes checkups until ctx ends. On a terminal each checkup replaces the previous one.
// To other outputs a checkup is written only if its verdict differs from the previous verdict.
// watchDoctor returns the last verdict as an error.
func (c *call) watchDoctor(ctx context.Context, look func(context.Context) (*checkup, error)) error {
	if c.doctor.every < 100*time.Millisecond {
		return usageError("-every must be at least 100ms")
	}
	screen := isTerminal(c.out) && !c.json
	var last *checkup
	for {
		u, err := look(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, mortise.ErrNotAllowed) {
			return err
		}
		if screen || last == nil || u.verdict() != last.verdict() {
			if err := c.tellWatched(u, screen); err != nil {
				return err
			}
		}
		if last = u; err != nil {
			c.warn("doctor", err) // the keys could not be listed, but the next attempt may succeed
		}
		if !sleep(ctx, c.doctor.every) {
			break
		}
	}
	if last == nil {
		return ctx.Err()
	}
	return last.code()
}

func (c *call) tellWatched(u *checkup, screen bool) error {
	if c.json {
		return c.tellCheckup(u)
	}
	format := eventTime + "\n"
	if screen {
		format = "\x1b[H\x1b[2J" + format
	}
	if _, err := io.WriteString(c.out, time.Now().UTC().Format(format)); err != nil {
		return err
	}
	return c.tellCheckup(u)
}

// verdict returns the headline without its durations, which differ in every checkup.
func (u *checkup) verdict() string {
	durations := regexp.MustCompile(`\b([0-9.]+(h|m|s|ms|µs|ns))+\b`)
	return durations.ReplaceAllString(u.Problem, "...")
}
