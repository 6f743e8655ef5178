package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type sessionShown struct {
	mortise.SessionInfo
	Silent *float64 `json:"silent_seconds,omitempty"` // absent if the leader does not know
}

func sessions(ctx context.Context, c *call, o membersOptions) error {
	if len(c.words) > 0 {
		return usageError("sessions takes no words, only flags")
	}
	from, err := o.from()
	if err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	all, next, err := c.sessionPages(ctx, g, from, o.limit)
	if err != nil {
		return err
	}
	if c.json {
		for _, s := range all {
			if err := c.show(shownSession(s)); err != nil {
				return err
			}
		}
		return nil
	}
	var rows [][]string
	for _, s := range all {
		rows = append(rows, sessionRow(s, time.Now()))
	}
	if err := c.table("HOLDER SESSION SINCE TTL SILENT HOLDS WAITS STATE", rows); err != nil || next == "" {
		return err
	}
	return c.printf("the next: mortise sessions -after %s\n", next)
}

// sessionPages reads the sessions from the leader page by page. If there are more sessions, next
// is the session after which the next page begins.
func (c *call) sessionPages(ctx context.Context, g *guest.Guest, at *query.SessionCursor, limit int,
) (all []mortise.SessionInfo, next string, err error) {
	all, more, err := paged(limit, at, func(at *query.SessionCursor) (list []mortise.SessionInfo, _ page,
		err error) {
		answer, err := put(ctx, c, g, query.AdminClient.Sessions, &query.PageRequest{From: at})
		if err == nil {
			err = json.Unmarshal(answer.Sessions, &list)
		}
		return list, answer, err
	})
	if more {
		next = all[len(all)-1].Session
	}
	return all, next, err
}

// silent returns the time since the leader last received a message of a session. It reports false
// if that time is unknown.
func silent(s mortise.SessionInfo) (time.Duration, bool) {
	return max(s.TTL-s.Left, 0), s.Left > 0 && !s.Expired
}

func shownSession(s mortise.SessionInfo) sessionShown {
	shown := sessionShown{SessionInfo: s}
	if d, known := silent(s); known {
		seconds := d.Seconds()
		shown.Silent = &seconds
	}
	return shown
}

func sessionRow(s mortise.SessionInfo, now time.Time) []string {
	row := []string{s.Name, s.Session, "", short(s.TTL), "", strconv.Itoa(s.Held), strconv.Itoa(s.Waiting), ""}
	if !s.Since.IsZero() {
		row[2] = short(max(now.Sub(s.Since), 0).Round(time.Second))
	}
	if d, known := silent(s); known {
		row[4] = short(d)
	}
	switch {
	case s.Expired:
		row[7] = "expired, in a lock delay"
	case s.Leaving:
		row[7] = "leaves"
	}
	return row
}
