package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// recoverGroup is the command recover. It makes all reachable instances of a group give up that
// group. If one of these instances reports a leader or has no directory, recoverGroup changes
// nothing.
func recoverGroup(ctx context.Context, c *call) error {
	group, err := c.word("")
	if err == nil && group == "" {
		err = usageError("which group? mortise doctor shows it, and says whether this is the step to take")
	}
	if err != nil {
		return err
	}
	id, err := nodeid.ParseHex(group)
	if err != nil {
		return usageError(plain.Sprintf("%q is not a group ID; mortise doctor shows the ID", group))
	}
	group = nodeid.Hex(id)
	g, reports, err := c.surveyed(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	var told []guest.Report
	for _, r := range reports {
		switch {
		case r.Status == nil || r.Status.Group != group:
		case r.Status.Leader != "":
			return wrong("%s reports that %s leads group %s: nothing is lost, and nothing was done", r.Status.Name,
				r.Status.Leader, group)
		case !r.Answer.Durable:
			return wrong("%s has no directory: a group in memory founds itself again "+
				"when all its instances are there; nothing was done", r.Status.Name)
		default:
			told = append(told, r)
		}
	}
	if len(told) == 0 {
		return wrong("no instance that answers belongs to group %s; nothing was done", group)
	}
	return c.giveUp(ctx, g, group, told)
}

// giveUp sends each instance the request to give up the group. An instance that gives up the group
// begins a new incarnation, which may interrupt its reply. Then the other instances of the group
// follow by themselves. So giveUp polls each instance that has not confirmed, until the instance
// has left the group.
func (c *call) giveUp(ctx context.Context, g *guest.Guest, group string, told []guest.Report) error {
	why := make([]error, len(told))
	for i, r := range told {
		asking, cancel := context.WithTimeout(ctx, c.within)
		_, err := guest.Ask(asking, g, r.Addr, query.AdminClient.Recover, &query.RecoverRequest{Group: group})
		cancel()
		if errors.Is(err, mortise.ErrNotAllowed) {
			return err
		}
		why[i] = err
	}
	leaving, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	var failed []error
	for i, r := range told {
		if why[i] != nil && !c.hasLeft(leaving, g, r.Addr, group) {
			failed = append(failed, wrong("%s at %s: %v", r.Status.Name, r.Addr, why[i]))
			continue
		}
		c.printf("%s at %s has given group %s up\n", r.Status.Name, r.Addr, group)
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	c.printf("they found the next group as soon as all instances of %s are in reach; "+
		"it grants nothing until its grace is over\n", foundedBy(told[0]))
	return nil
}

const (
	followWithin = 5 * time.Second // time for the other instances to follow the first one
	followLook   = 100 * time.Millisecond
)

func (c *call) hasLeft(ctx context.Context, g *guest.Guest, addr, group string) bool {
	for {
		asking, cancel := context.WithTimeout(ctx, c.within)
		a, err := guest.Ask(asking, g, addr, query.AdminClient.Here, &query.HereRequest{})
		cancel()
		var s struct{ Group string }
		if err == nil && json.Unmarshal(a.Status, &s) == nil && s.Group != group {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(followLook):
		}
	}
}

func wrong(format string, args ...any) error { return errors.New(plain.Sprintf(format, args...)) }

func foundedBy(r guest.Report) string {
	if len(r.Answer.Founders) > 0 {
		return fmt.Sprintf("Founders (%d names)", len(r.Answer.Founders))
	}
	return fmt.Sprintf("Replicas (%d)", r.Answer.Replicas)
}
