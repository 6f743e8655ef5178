package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func (c *call) walk(ctx context.Context, g *guest.Guest, prefix string, each func(mortise.KeyInfo) bool) error {
	q := &query.ListRequest{Prefix: []byte(prefix)}
	for {
		a, err := put(ctx, c, g, query.AdminClient.List, q)
		if err != nil {
			return err
		}
		var keys []mortise.KeyInfo
		if err := json.Unmarshal(a.Keys, &keys); err != nil {
			return err
		}
		for _, k := range keys {
			if !each(k) {
				return nil
			}
		}
		if !a.More {
			return nil
		}
		q.Next = a.Next
	}
}

func list(ctx context.Context, c *call) error {
	prefix, err := c.word("")
	if err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	var rows [][]string
	var failed error
	own := 0
	err = c.walk(ctx, g, prefix, func(k mortise.KeyInfo) bool {
		if c.json {
			failed = c.show(k)
			return failed == nil
		}
		if ofTick(k) {
			own++
			return true
		}
		rows = append(rows, keyRow(k, time.Now()))
		return true
	})
	if err != nil || failed != nil || c.json {
		return cmpErr(err, failed)
	}
	if err := c.table(keyHeading, rows); err != nil || own == 0 {
		return err
	}
	c.printf("and %d that package tick holds for itself; -o json has them\n", own)
	return nil
}

// ofTick reports whether package tick itself has requested a key. Such a key is held long by
// design, and no user code runs while it is held.
func ofTick(k mortise.KeyInfo) bool {
	return len(k.Queue) > 0 && k.Queue[0].Labels[shown.PurposeLabel] == shown.Tick
}

// lasts reports whether the first holder holds the key long by design.
func lasts(k mortise.KeyInfo) bool {
	return len(k.Queue) > 0 && k.Queue[0].Token != 0 && shown.Lasting(k.Queue[0].Labels)
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

const keyHeading = "KEY HOLDER TOKEN HELD-FOR WAITING VALUE"

func keyRow(k mortise.KeyInfo, now time.Time) []string {
	row := []string{k.Key, "", "", "", strconv.Itoa(k.Waiting), ""}
	if k.Held > 0 && len(k.Queue) > 0 {
		first := k.Queue[0]
		row[1], row[2], row[3], row[5] = first.Holder, tokenText(first.Token), heldFor(first, now), first.Value
		if first.Kept {
			row[1] += " (keeps it)"
		}
		if k.Held > 1 {
			row[1] += fmt.Sprintf(" and %d more", k.Held-1)
		}
	}
	return row
}

func tokenText(t mortise.Token) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(t), 10)
}

func heldFor(s mortise.Standing, now time.Time) string {
	if s.Since.IsZero() {
		return ""
	}
	return short(max(now.Sub(s.Since), 0))
}

func (c *call) peek(ctx context.Context, g *guest.Guest, key string) (mortise.KeyInfo, error) {
	a, err := put(ctx, c, g, query.AdminClient.Peek, &query.KeyRequest{Key: []byte(key)})
	if err != nil {
		return mortise.KeyInfo{}, err
	}
	var keys []mortise.KeyInfo
	if err := json.Unmarshal(a.Keys, &keys); err != nil || len(keys) == 0 {
		return mortise.KeyInfo{Key: key}, err
	}
	return keys[0], nil
}

func get(ctx context.Context, c *call) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	k, err := c.peek(ctx, g, key)
	if err != nil {
		return err
	}
	if c.json {
		return c.show(k)
	}
	if k.Revision != 0 {
		c.printf("data %q at revision %d\n", k.Data, k.Revision)
	}
	if len(k.Queue) == 0 {
		c.printf("%s is free, and no request waits for it\n", key)
		return nil
	}
	var rows [][]string
	for i, s := range k.Queue {
		rows = append(rows, standingRow(i, s, time.Now()))
	}
	if err := c.table("PLACE HOLDER SESSION STATE TOKEN HELD-FOR LEASE-LEFT MODE VALUE", rows); err != nil {
		return err
	}
	if more := k.Held + k.Waiting - len(k.Queue); more > 0 {
		c.printf("and %d more\n", more)
	}
	if earlier := otherLives(k.Queue); earlier != "" {
		c.printf("\n%s has several sessions here: they belong to two incarnations, or it has opened some itself "+
			"(NewSession). "+
			"mortise doctor %s shows which of them are alive.\n", earlier, plain.Shell(key))
	}
	if first := k.Queue[0]; k.Waiting > 0 && first.Token != 0 && !first.Expired && !lasts(k) {
		c.printf("\nIf %s does not release it: stop it, then run  mortise unlock --force %s --token %d --reason \"...\"\n",
			first.Holder, plain.Shell(key), uint64(first.Token))
	}
	return nil
}

func otherLives(queue []mortise.Standing) string {
	session := map[string]string{}
	for _, s := range queue {
		if first, known := session[s.Holder]; known && first != s.Session {
			return s.Holder
		}
		session[s.Holder] = s.Session
	}
	return ""
}

// holdsOrKeeps returns the verb for a hold. An instance that keeps a lock may have no caller that
// holds it.
func holdsOrKeeps(s mortise.Standing) string {
	if s.Kept {
		return "keeps"
	}
	return "holds"
}

func standingRow(i int, s mortise.Standing, now time.Time) []string {
	row := []string{strconv.Itoa(i), s.Holder, s.Session, holdsOrKeeps(s), tokenText(s.Token), heldFor(s, now),
		short(s.Left), "", s.Value}
	switch {
	case s.Expired:
		row[3] = "expired, in its lock delay"
	case s.Token == 0 && s.WaitsFor >= 0:
		row[3] = fmt.Sprintf("waits for %d", s.WaitsFor)
	case s.Token == 0:
		row[3] = "waits"
	}
	if s.Unsearched {
		row[3] += ", the search for a deadlock goes on"
	}
	if s.Left == 0 {
		row[6] = ""
	}
	row[7] = partsText(s.Part, s.Also)
	return row
}
