package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"time"

	"github.com/mortise-lock/mortise"
)

type doctorOptions struct {
	watch bool
	every time.Duration
}

func doctorFlags(o *doctorOptions, fs *flag.FlagSet) {
	fs.BoolVar(&o.watch, "watch", false,
		"repeat until Ctrl-C; the exit code is that of the last verdict")
	fs.DurationVar(&o.every, "every", 5*time.Second, "with -watch: the time between two checkups")
}

func doctor(ctx context.Context, c *call, o doctorOptions) error {
	key, err := c.word("")
	if err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	look := func(ctx context.Context) (*checkup, error) { return c.checkUp(ctx, g, key) }
	if o.watch {
		return c.watchDoctor(ctx, o.every, look)
	}
	u, err := look(ctx)
	if u != nil {
		err = cmpErr(c.tellCheckup(u), err, u.code())
	}
	return err
}

// watchDoctor makes checkups until ctx ends. On a terminal each checkup replaces the previous one.
// To other outputs a checkup is written only if its verdict differs from the previous verdict.
// watchDoctor returns the last verdict as an error.
func (c *call) watchDoctor(ctx context.Context, every time.Duration, look func(context.Context) (*checkup, error),
) error {
	if every < 100*time.Millisecond {
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
		if !sleep(ctx, every) {
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
