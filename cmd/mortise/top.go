package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
)

const topKeys = 10_000

type topOptions struct {
	every time.Duration
	rows  int
	count int
	by    string
}

func topFlags(o *topOptions, fs *flag.FlagSet) {
	fs.DurationVar(&o.every, "every", 2*time.Second, "time between two looks")
	fs.IntVar(&o.rows, "n", 20, "rows")
	fs.IntVar(&o.count, "count", 0, "end after so many looks; 0 means at Ctrl-C")
	fs.StringVar(&o.by, "by", "waiting",
		"order: waiting, held (longest held) or changes (of hands, seen between looks)")
}

type hot struct {
	mortise.KeyInfo
	HeldFor time.Duration // how long the first holder has held the key
	Changes int           // how often the first holder differed between two successive readings
}

func top(ctx context.Context, c *call, o topOptions) error {
	prefix, err := c.word("")
	if err != nil {
		return err
	}
	less, ok := topOrders()[o.by]
	if !ok || o.rows < 1 || o.every < 100*time.Millisecond {
		return usageError("-by must be waiting, held or changes, -n at least 1, and -every at least 100ms")
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	before := map[string]hot{}
	for look := 1; ; look++ {
		keys, more, err := c.hottest(ctx, g, prefix, before)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			slices.SortFunc(keys, less)
			err = c.showTop(o, prefix, keys, more)
		}
		if err != nil && (look == 1 || o.count > 0) {
			return err
		}
		if err != nil {
			c.warn("top", err)
		}
		if look == o.count {
			return nil
		}
		if !sleep(ctx, o.every) {
			return nil
		}
	}
}

func topOrders() map[string]func(a, b hot) int {
	then := func(a, b hot) int {
		return cmp.Or(-cmp.Compare(a.Waiting, b.Waiting), -cmp.Compare(a.HeldFor, b.HeldFor), cmp.Compare(a.Key, b.Key))
	}
	return map[string]func(a, b hot) int{
		"waiting": then,
		"held":    func(a, b hot) int { return cmp.Or(-cmp.Compare(a.HeldFor, b.HeldFor), then(a, b)) },
		"changes": func(a, b hot) int { return cmp.Or(-cmp.Compare(a.Changes, b.Changes), then(a, b)) },
	}
}

func (c *call) hottest(ctx context.Context, g *guest.Guest, prefix string, before map[string]hot) (keys []hot,
	more bool, err error) {
	now := time.Now()
	err = c.walk(ctx, g, prefix, func(k mortise.KeyInfo) bool {
		if ofTick(k) {
			return true
		}
		h := hot{KeyInfo: k}
		if k.Held > 0 && len(k.Queue) > 0 && !k.Queue[0].Since.IsZero() {
			h.HeldFor = max(now.Sub(k.Queue[0].Since), 0)
		}
		old, known := before[k.Key]
		h.Changes = old.Changes
		if known && firstToken(k) != firstToken(old.KeyInfo) {
			h.Changes++
		}
		keys = append(keys, h)
		more = len(keys) >= topKeys
		return !more
	})
	if err != nil {
		return nil, false, err
	}
	clear(before)
	for _, h := range keys {
		before[h.Key] = h
	}
	return keys, more, nil
}

func firstToken(k mortise.KeyInfo) mortise.Token {
	if len(k.Queue) == 0 {
		return 0
	}
	return k.Queue[0].Token
}

type topShown struct {
	At                  time.Time
	Keys, Held, Waiting int
	More                bool // there are more keys than top reads
	Top                 []hot
}

func (c *call) showTop(o topOptions, prefix string, keys []hot, more bool) error {
	held, waiting := 0, 0
	for _, h := range keys {
		held, waiting = held+h.Held, waiting+h.Waiting
	}
	shown := keys[:min(len(keys), o.rows)]
	if c.json {
		return c.show(topShown{time.Now(), len(keys), held, waiting, more, shown})
	}
	var b strings.Builder
	if isTerminal(c.out) {
		b.WriteString("\x1b[H\x1b[2J")
	}
	which := "keys"
	if prefix != "" {
		which = "keys of " + plain.Text(prefix)
	}
	if more {
		which = "first " + which
	}
	fmt.Fprintf(&b, "%s  %d %s, %d holds, %d waiting; by %s\n", time.Now().UTC().Format(eventTime), len(keys), which,
		held, waiting, o.by)
	var rows [][]string
	for _, h := range shown {
		row := keyRow(h.KeyInfo, time.Now())
		rows = append(rows, append(row[:5:5], fmt.Sprint(h.Changes), row[5]))
	}
	if err := table(&b, "KEY HOLDER TOKEN HELD-FOR WAITING CHANGES VALUE", rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, b.String())
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
