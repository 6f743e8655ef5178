package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
)

const (
	secondLook = 1500 * time.Millisecond // longer than an election takes
	waitedFor  = 5
)

type checkup struct {
	*diagnosis
	facts facts
	keys  []hot
}

func (u *checkup) code() error {
	if u.Well {
		return nil
	}
	return &exitError{code: exitNo}
}

// checkUp queries all instances. If it returns both a checkup and an error, the keys could not be
// listed.
func (c *call) checkUp(ctx context.Context, g *guest.Guest, key string) (*checkup, error) {
	f := c.examine(ctx, g)
	for _, r := range f.reports {
		if err := guest.Denied(r.Answer); err != nil {
			return nil, err
		}
	}
	silent := slices.ContainsFunc(f.reports, func(r guest.Report) bool { return r.Outcome == guest.Silent })
	if len(f.answers()) > 0 && (f.health == nil || silent) { // an election may be running, or a machine may be busy
		sleep(ctx, secondLook)
		f = c.examine(ctx, g)
	}
	u := &checkup{diagnosis: diagnose(f), facts: f}
	var err error
	if f.health != nil {
		u.keys, err = c.waitedFor(ctx, g, key)
		u.stuck(f, u.keys)
	}
	return u, err
}

// verdict returns the headline without its durations, which differ in every checkup.
func (u *checkup) verdict() string {
	durations := regexp.MustCompile(`\b([0-9.]+(h|m|s|ms|µs|ns))+\b`)
	return durations.ReplaceAllString(u.Problem, "...")
}

type checkupShown struct {
	*diagnosis
	WaitedFor []hot // the keys that requests wait for, or the given key
	Instances []seen
}

func (c *call) tellCheckup(u *checkup) error {
	if c.json {
		return c.show(checkupShown{u.diagnosis, u.keys, allSeen(u.facts.reports)})
	}
	c.tellDiagnosis(u.diagnosis, u.facts)
	if len(u.keys) == 0 {
		return nil
	}
	return c.tellKeys(u.keys, u.facts)
}

func allSeen(reports []guest.Report) (list []seen) {
	for _, r := range reports {
		list = append(list, seenOf(r))
	}
	return list
}

func (c *call) examine(ctx context.Context, g *guest.Guest) facts {
	reports, lookups, _ := c.survey(ctx, g)
	return facts{reports, lookups, c.health(ctx, g, reports)}
}

// If key is empty, waitedFor returns the keys that requests wait for, the longest held first,
// without keys that are held long by design. Otherwise it returns only the given key.
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

func (c *call) tellKeys(keys []hot, f facts) error {
	c.printf("waited for:\n")
	for _, k := range keys {
		if len(k.Queue) == 0 {
			c.printf("  %s is free, and no request waits for it\n", k.Key)
			continue
		}
		first := k.Queue[0]
		if first.Token == 0 {
			c.printf("  %s: it is not held, %d wait: %s is first, and waits for the end of the grace or for another of its "+
				"keys (%s)\n", k.Key, k.Waiting, first.Holder, partsText(first.Part, first.Also))
			continue
		}
		known := holderFate(first, f)
		c.printf("  %s: %s %s it for %s (token %d, session %s, %q), %d wait\n    %s\n", k.Key, first.Holder,
			holdsOrKeeps(first), short(k.HeldFor), uint64(first.Token), first.Session, first.Value, k.Waiting, known.text)
		if k.Waiting > 0 && known.byForce {
			c.printf("    to end it: stop %s, or  mortise unlock --force %s --token %d --reason \"...\"\n",
				first.Holder, plain.Shell(k.Key), uint64(first.Token))
		}
	}
	return nil
}
