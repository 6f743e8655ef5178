package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type seen struct {
	Address string
	From    string // where the address was found
	Outcome guest.Outcome
	Error   string `json:",omitempty"`
	Failed  string `json:",omitempty"`
	Durable bool
	Status  *mortise.Status `json:",omitempty"`
}

func seenOf(r guest.Report) seen {
	s := seen{Address: r.Addr, From: r.From, Outcome: r.Outcome, Failed: r.Answer.GetFailed(),
		Durable: r.Answer.GetDurable(), Status: r.Status}
	if r.Err != nil {
		s.Error = r.Err.Error()
	}
	return s
}

func (c *call) survey(ctx context.Context, g *guest.Guest) ([]guest.Report, []error, error) {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	reports, errs := g.Survey(ctx)
	failed := append([]error(nil), errs...)
	for _, r := range reports {
		if err := guest.Denied(r.Answer); r.Status != nil && err != nil {
			return reports, errs, err
		}
		if r.Status != nil {
			return reports, errs, nil
		}
		failed = append(failed, r.Err)
	}
	return reports, errs, fmt.Errorf("%w: no instance answers: %w", guest.ErrNotReady, errors.Join(failed...))
}

// surveyed returns a guest, which the caller must close, and what the instances report to it.
func (c *call) surveyed(ctx context.Context) (*guest.Guest, []guest.Report, error) {
	g, err := c.guest()
	if err != nil {
		return nil, nil, err
	}
	reports, _, err := c.survey(ctx, g)
	if err != nil {
		g.Close()
		return nil, nil, err
	}
	return g, reports, nil
}

func part(s *mortise.Status) string {
	switch {
	case s.Leading:
		return "leads"
	case s.Votes:
		return "votes"
	case !s.Joined:
		return "joins"
	}
	return "member"
}

// A leader that takes longer to report on the voters has most likely lost its leadership.
const healthWithin = time.Second

// health gets the report on the voters from the leader, through any instance that reports a leader.
// It returns nil if no leader answers.
func (c *call) health(ctx context.Context, g *guest.Guest, reports []guest.Report) *mortise.Health {
	ctx, cancel := context.WithTimeout(ctx, min(c.within, healthWithin))
	defer cancel()
	for _, r := range reports {
		if r.Status == nil || r.Status.Leader == "" || ctx.Err() != nil {
			continue
		}
		a, err := guest.Ask(ctx, g, r.Addr, query.AdminClient.Health, &query.StateRequest{})
		var h mortise.Health
		if err == nil && json.Unmarshal(a.Health, &h) == nil {
			return &h
		}
	}
	return nil
}

type statusShown struct {
	Health    *mortise.Health // nil means that no leader has reported
	Instances []seen
}

const maxIdleShown = 5 // of one instance

func status(ctx context.Context, c *call) error {
	g, reports, err := c.surveyed(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	h := c.health(ctx, g, reports)
	if c.json {
		all := statusShown{Health: h}
		for _, r := range reports {
			all.Instances = append(all.Instances, seenOf(r))
		}
		return c.show(all)
	}
	if h != nil {
		c.printf("%v\n\n", h) // Health.String escapes the texts of other processes
	} else {
		c.printf("there is no leader; mortise doctor says why\n\n")
	}
	var rows [][]string
	var notes []string
	for _, r := range reports {
		s := r.Status
		if s == nil {
			continue
		}
		rows = append(rows, []string{s.Name, s.Address, part(s), s.Group, s.Leader, fmt.Sprint(s.Term),
			string(s.Lease), short(s.LeaseFor.Round(time.Second / 10)), fmt.Sprint(s.Held), fmt.Sprint(s.Waiters)})
		if text := strings.TrimSpace(s.Waiting + " " + r.Answer.Failed); text != "" {
			notes = append(notes, s.Name+": "+text)
		}
		for _, h := range s.Idle[:min(len(s.Idle), maxIdleShown)] {
			notes = append(notes, plain.Sprintf("%s: %v", s.Name, h))
		}
	}
	if err := c.table("NAME ADDRESS PART GROUP LEADER TERM LEASE LEFT HOLDS WAITS", rows); err != nil {
		return err
	}
	for _, r := range reports {
		if r.Status == nil {
			notes = append(notes, fmt.Sprintf("%s (named by %s): %s: %v", r.Addr, r.From, r.Outcome, r.Err))
		}
	}
	for _, n := range notes {
		c.printf("%s\n", phrased(n))
	}
	return nil
}
