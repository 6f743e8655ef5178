package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
)

type watchOptions struct{ every time.Duration }

func watchFlags(c *call, fs *flag.FlagSet) {
	fs.DurationVar(&c.watch.every, "every", time.Second, "time between two looks")
}

// happened is a difference between two looks.
type happened struct {
	At      time.Time
	Event   string // "held" (at the first look), "granted", "released" or "waiting"
	Key     string
	Holder  string        `json:",omitempty"`
	Token   mortise.Token `json:",omitempty"`
	Waiting int
}

// watch is the command watch. It looks again and again and tells the differences: what comes and goes between two looks is not seen.
func watch(ctx context.Context, c *call) error {
	prefix, err := c.word("")
	if err != nil {
		return err
	}
	if c.watch.every < 100*time.Millisecond {
		return usageError("-every is at least 100ms")
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	var before map[string]mortise.KeyInfo
	for {
		after := map[string]mortise.KeyInfo{}
		err := c.walk(ctx, g, prefix, func(k mortise.KeyInfo) bool { after[k.Key] = k; return true })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && before == nil:
			return err
		case err != nil:
			fmt.Fprintln(c.errs, "mortise watch:", err) // it may come back
		default:
			for _, h := range differences(before, after, time.Now()) {
				if err := c.tell(h); err != nil {
					return err
				}
			}
			before = after
		}
		if !sleep(ctx, c.watch.every) {
			return nil
		}
	}
}

func (c *call) tell(h happened) error {
	if c.json {
		return c.show(h)
	}
	_, err := fmt.Fprintf(c.out, "%s  %-8s  %s  %s  token %d, %d waiting\n", h.At.Format(time.TimeOnly), h.Event, h.Key, cmp.Or(h.Holder, "-"), uint64(h.Token), h.Waiting)
	return err
}

// differences says what has happened between two looks, by key and, within one, ends before begins.
func differences(before, after map[string]mortise.KeyInfo, now time.Time) (list []happened) {
	first := before == nil
	keys := slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for k := range maps.Keys(before) {
			if !yield(k) {
				return
			}
		}
		for k := range maps.Keys(after) {
			if !yield(k) {
				return
			}
		}
	}))
	for _, key := range keys {
		was, is := holds(before[key]), holds(after[key])
		event := func(name string, s mortise.Standing) {
			list = append(list, happened{now, name, key, s.Holder, s.Token, after[key].Waiting})
		}
		quiet := len(list)
		for _, s := range was {
			if !has(is, s.Token) {
				event("released", s)
			}
		}
		for _, s := range is {
			if first {
				event("held", s)
			} else if !has(was, s.Token) {
				event("granted", s)
			}
		}
		if len(list) == quiet && before[key].Waiting != after[key].Waiting {
			event("waiting", mortise.Standing{})
		}
	}
	return list
}

func holds(k mortise.KeyInfo) (list []mortise.Standing) {
	for _, s := range k.Queue {
		if s.Token != 0 {
			list = append(list, s)
		}
	}
	return list
}

func has(list []mortise.Standing, token mortise.Token) bool {
	return slices.ContainsFunc(list, func(s mortise.Standing) bool { return s.Token == token })
}
