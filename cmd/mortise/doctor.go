package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/purpose"
)

const (
	secondLook = 1500 * time.Millisecond // after which an election would be over
	waitedFor  = 5                       // keys that doctor shows
)

// doctor is the command doctor.
func doctor(ctx context.Context, c *call) error {
	key, err := c.word("")
	if err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	f := c.examine(ctx, g)
	for _, r := range f.reports {
		if err := guest.Denied(r.Answer); err != nil {
			return err
		}
	}
	silent := slices.ContainsFunc(f.reports, func(r guest.Report) bool { return r.Outcome == guest.Silent })
	if len(f.answers()) > 0 && (f.health == nil || silent) { // an election, or a busy machine, perhaps
		sleep(ctx, secondLook)
		f = c.examine(ctx, g)
	}
	d := diagnose(f)
	var keys []hot
	if f.health != nil {
		keys, err = c.waitedFor(ctx, g, key)
		f.stuck(d, keys)
	}
	if c.json {
		err = c.show(struct {
			*diagnosis
			WaitedFor []hot // keys that somebody waits for, or the one that was asked about
			Instances []seen
		}{d, keys, allSeen(f.reports)})
	} else {
		c.tellDiagnosis(d, f)
		if err == nil && len(keys) > 0 {
			err = c.tellKeys(keys, f)
		}
	}
	if err == nil && !d.Well {
		err = &exitError{code: exitNo}
	}
	return err
}

func allSeen(reports []guest.Report) (list []seen) {
	for _, r := range reports {
		list = append(list, seenOf(r))
	}
	return list
}

// examine asks everybody, and the leader if there is one.
func (c *call) examine(ctx context.Context, g *guest.Guest) facts {
	reports, lookups, _ := c.survey(ctx, g)
	return facts{reports, lookups, c.health(ctx, g, reports)}
}

// waitedFor returns the keys for which requests wait, the longest held first, or the one that was asked about. Those that are
// held long by design are left out.
func (c *call) waitedFor(ctx context.Context, g *guest.Guest, key string) (keys []hot, err error) {
	if key != "" {
		k, err := c.peek(ctx, g, key)
		return []hot{hotOf(k)}, err
	}
	looked := 0
	err = c.walk(ctx, g, "", func(k mortise.KeyInfo) bool {
		if k.Waiting > 0 && !lasts(k) {
			keys = append(keys, hotOf(k))
		}
		looked++
		return looked < topKeys
	})
	slices.SortFunc(keys, topOrders()["held"])
	return keys[:min(len(keys), waitedFor)], err
}

// lasts reports whether a key is held long by design.
func lasts(k mortise.KeyInfo) bool {
	return len(k.Queue) > 0 && k.Queue[0].Token != 0 && purpose.Lasting(k.Queue[0].Labels)
}

func hotOf(k mortise.KeyInfo) hot {
	h := hot{KeyInfo: k}
	if k.Held > 0 && len(k.Queue) > 0 && !k.Queue[0].Since.IsZero() {
		h.HeldFor = max(time.Since(k.Queue[0].Since), 0)
	}
	return h
}

func (c *call) tellDiagnosis(d *diagnosis, f facts) {
	c.verdict(d.Well)
	c.printf("%s\n", d.Problem)
	for _, text := range d.Why {
		c.printf("  %s\n", text)
	}
	c.printf("next safe step:\n")
	for i, text := range d.Steps {
		c.printf("  %d. %s\n", i+1, text)
	}
	c.printf("asked:\n")
	for _, r := range f.reports {
		who := string(r.Outcome)
		if r.Status != nil {
			who = fmt.Sprintf("%s, %s, leader %s", r.Status.Name, part(r.Status), cmp.Or(r.Status.Leader, "none"))
		}
		c.printf("  %s (by %s): %s\n", r.Addr, r.From, who)
	}
}

// tellKeys says of each key why those who wait for it do.
func (c *call) tellKeys(keys []hot, f facts) error {
	c.printf("waited for:\n")
	for _, k := range keys {
		if len(k.Queue) == 0 {
			c.printf("  %s is free, and nobody waits for it\n", k.Key)
			continue
		}
		first := k.Queue[0]
		if first.Token == 0 {
			c.printf("  %s: nobody holds it, %d wait: %s is first, for the end of the grace or for another of its keys (%v)\n", k.Key, k.Waiting, first.Holder, first.Keys)
			continue
		}
		known := holderFate(first, f)
		c.printf("  %s: %s holds it for %s (token %d, session %s, %q), %d wait\n    %s\n", k.Key, first.Holder, short(k.HeldFor), uint64(first.Token), first.Session, first.Value, k.Waiting, known.text)
		if k.Waiting > 0 && known.byForce {
			c.printf("    to end it: stop %s, or  mortise unlock --force %s --token %d --reason \"...\"\n", first.Holder, quoted(k.Key), uint64(first.Token))
		}
	}
	return nil
}
