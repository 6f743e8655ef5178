package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type watchOptions struct{ after uint64 }

func watchFlags(o *watchOptions, fs *flag.FlagSet) {
	fs.Uint64Var(&o.after, "after", 0,
		"continue after this position, as -o json shows it; 0 means begin with the present state")
}

// watchWithin is the time limit of one query of a watch. If there is no event, the leader waits for
// a while before it replies.
const watchWithin = 10 * time.Second

type happened struct {
	Position   uint64 `json:",string"`
	Kind       mortise.EventKind
	Key        string          `json:",omitempty"`
	Mode       string          `json:",omitempty"` // of the hold
	Tree       bool            `json:",omitempty"`
	Token      mortise.Token   `json:",omitempty"`
	Holder     string          `json:",omitempty"`
	At         *time.Time      `json:",omitempty"`
	Cause      mortise.Outcome `json:",omitempty"`
	By, Reason string          `json:",omitempty"`
	Data       []byte          `json:",omitempty"`
	Revision   uint64          `json:",omitempty,string"`
}

// watch prints events. It continues when the leader or the queried instance changes. If events may
// be missing, it prints an event of the kind reset.
func watch(ctx context.Context, c *call, o watchOptions) error {
	prefix, err := c.word("")
	if err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	q := &query.WatchRequest{Prefixes: [][]byte{[]byte(prefix)}, After: o.after}
	for told := false; ; {
		a, events, err := nextEvents(ctx, g, q)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!told || codeOf(err) != exitNotReady):
			return err
		case err != nil:
			c.warn("watch", err)
			continue
		}
		told = true
		for _, e := range events {
			if err := c.tellEvent(e); err != nil {
				return err
			}
		}
		if q.After = a.Position; a.Missed {
			q.After = 0
		}
	}
}

func nextEvents(ctx context.Context, g *guest.Guest, q *query.WatchRequest) (a *query.EventsAnswer,
	events []mortise.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchWithin)
	defer cancel()
	if a, err = guest.Put(ctx, g, query.AdminClient.Watch, q); err == nil && a.Events != nil {
		err = json.Unmarshal(a.Events, &events)
	}
	return a, events, err
}

func (c *call) tellEvent(e mortise.Event) error {
	if c.json {
		return c.show(happenedOf(e))
	}
	if e.Kind == mortise.EventCurrent {
		return nil
	}
	return c.printf("%s\n", eventLine(e))
}

func happenedOf(e mortise.Event) happened {
	h := happened{
		Position: e.Position, Kind: e.Kind, Key: e.Key, Tree: e.Tree, Token: e.Token, Holder: e.Holder,
		Cause: e.Cause, By: e.By, Reason: e.Reason, Data: e.Data, Revision: e.Revision,
	}
	if e.Token != 0 {
		h.Mode = e.Mode.String()
	}
	if !e.At.IsZero() {
		h.At = &e.At
	}
	return h
}

// eventTime contains the date, because a watch can run for days.
const eventTime = "2006-01-02 15:04:05Z"

func eventLine(e mortise.Event) string {
	at := strings.Repeat(" ", len(eventTime))
	if !e.At.IsZero() {
		at = e.At.UTC().Format(eventTime)
	}
	parts := []string{at, fmt.Sprintf("%-5s", e.Kind)}
	switch {
	case e.Kind == mortise.EventReset:
		parts = append(parts, "events may be missing; the present state follows")
	case e.Key != "": // a move of the lead has none
		parts = append(parts, e.Key)
	}
	if e.Holder != "" {
		parts = append(parts, e.Holder)
	}
	if e.Token != 0 {
		parts = append(parts, "token "+tokenText(e.Token))
	}
	if e.Token != 0 && (e.Mode != mortise.Exclusive || e.Tree) {
		parts = append(parts, partsText(e.Part, nil))
	}
	if e.Cause != "" {
		parts = append(parts, string(e.Cause))
	}
	switch {
	case e.By != "":
		parts = append(parts, fmt.Sprintf("by %s: %s", e.By, cmp.Or(e.Reason, "no reason")))
	case e.Reason != "":
		parts = append(parts, e.Reason)
	}
	if e.Kind == mortise.EventData {
		parts = append(parts, fmt.Sprintf("%q", e.Data))
	}
	return strings.Join(parts, "  ")
}

func audit(ctx context.Context, c *call) error {
	if _, err := c.word(""); err != nil || len(c.words) > 0 {
		return usageError("audit takes no words")
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	a, err := put(ctx, c, g, query.AdminClient.Audit, &query.StateRequest{})
	if err != nil {
		return err
	}
	var events []mortise.Event
	if err := json.Unmarshal(a.Events, &events); err != nil {
		return err
	}
	for _, e := range events {
		if err := c.tellEvent(e); err != nil {
			return err
		}
	}
	return nil
}
