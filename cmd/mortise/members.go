package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type membersOptions struct {
	limit int
	after string
}

func membersFlags(o *membersOptions, fs *flag.FlagSet) {
	fs.IntVar(&o.limit, "n", 100, "rows; 0 means all")
	fs.StringVar(&o.after, "after", "", "begin after this session; the last line of a list names it")
}

type memberList struct {
	members []mortise.Member
	total   int
	leader  string // the instance ID; empty if the leader itself has not answered the survey
	next    string // the last session of this page; empty on the last page
}

func members(ctx context.Context, c *call, o membersOptions) error {
	from, err := o.from()
	if err != nil {
		return err
	}
	g, reports, err := c.surveyed(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	all, err := c.memberList(ctx, g, reports, from, o.limit)
	if denied := (*mortise.NotAllowedError)(nil); errors.As(err, &denied) {
		return err
	}
	if err != nil {
		return c.tellLastMembers(reports, err)
	}
	for _, r := range reports {
		if r.Status != nil && r.Status.Leading {
			all.leader = r.Status.Instance
		}
	}
	return c.tellMembers(all)
}

func (o membersOptions) from() (*query.SessionCursor, error) {
	if o.limit < 0 {
		return nil, usageError("-n must be at least 0")
	}
	if o.after == "" {
		return nil, nil
	}
	id, err := strconv.ParseUint(o.after, 10, 64)
	if err != nil {
		return nil, usageError("-after takes a SESSION of the list, a number")
	}
	return &query.SessionCursor{At: id, Past: id}, nil
}

// memberList reads the list of members from the leader page by page, through an instance that
// reports a leader.
func (c *call) memberList(ctx context.Context, g *guest.Guest, reports []guest.Report,
	at *query.SessionCursor, limit int,
) (all memberList, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	err = errors.New("no instance that answers knows a leader")
	for _, r := range reports {
		if r.Status == nil || r.Status.Leader == "" || !r.Status.Attached || ctx.Err() != nil {
			continue
		}
		if all, err = c.pages(ctx, g, r.Addr, at, limit); err == nil {
			return all, nil
		}
		if denied := (*mortise.NotAllowedError)(nil); errors.As(err, &denied) {
			return all, err
		}
	}
	return all, err
}

func (c *call) pages(ctx context.Context, g *guest.Guest, addr string, at *query.SessionCursor, limit int,
) (all memberList, err error) {
	var more bool
	all.members, more, err = paged(limit, at, func(at *query.SessionCursor) (list []mortise.Member, _ page,
		err error) {
		answer, err := guest.Ask(ctx, g, addr, query.AdminClient.Members, &query.PageRequest{From: at})
		if err != nil {
			return nil, nil, err
		}
		all.total = int(answer.Total)
		err = json.Unmarshal(answer.Members, &list)
		return list, answer, err
	})
	if more {
		all.next = all.members[len(all.members)-1].Session
	}
	return all, err
}

type page interface {
	GetMore() bool
	GetFrom() *query.SessionCursor
}

// paged reads a list of sessions page by page. The argument most limits the number of entries. Zero
// means no limit. The result more reports whether there are more entries.
func paged[T any](most int, at *query.SessionCursor,
	ask func(*query.SessionCursor) ([]T, page, error),
) (all []T, more bool, err error) {
	for {
		part, a, err := ask(at)
		if err != nil {
			return nil, false, err
		}
		all = append(all, part...)
		if most > 0 && len(all) >= most && (a.GetMore() || len(all) > most) {
			return all[:most], true, nil
		}
		if !a.GetMore() {
			return all, false, nil
		}
		at = a.GetFrom()
	}
}

const memberHeading = "NAME ADDRESS INSTANCE ZONE VERSION TIER PART SINCE SESSION"

func memberRow(m mortise.Member, leader string, now time.Time) []string {
	name, part, since := m.Name, "", ""
	if m.For != "" {
		name += " (for " + m.For + ")"
	}
	switch {
	case m.Leaving:
		part = "leaves"
	case m.Votes && m.Instance == leader:
		part = "leads"
	case m.Votes:
		part = "votes"
	}
	if !m.Since.IsZero() {
		since = short(max(now.Sub(m.Since), 0).Round(time.Second))
	}
	return []string{name, m.Address, m.Instance, m.Zone, m.Version, string(m.Tier), part, since, m.Session}
}

func (c *call) tellMembers(all memberList) error {
	if c.json {
		for _, m := range all.members {
			if err := c.show(m); err != nil {
				return err
			}
		}
		return nil
	}
	if err := c.tableOf(all.members, all.leader); err != nil {
		return err
	}
	if all.next == "" {
		return nil
	}
	return c.printf("%d of about %d; the next: mortise members -after %s\n", len(all.members), all.total, all.next)
}

func (c *call) tableOf(list []mortise.Member, leader string) error {
	var rows [][]string
	for _, m := range list {
		rows = append(rows, memberRow(m, leader, time.Now()))
	}
	return c.table(memberHeading, rows)
}

// tellLastMembers is called if no leader answers. It prints the instances that answer.
func (c *call) tellLastMembers(reports []guest.Report, why error) error {
	if c.json {
		for _, r := range reports {
			if err := c.show(seenOf(r)); err != nil {
				return err
			}
		}
		return nil
	}
	_ = c.printf("no leader has answered with the list of members (%v); these instances were found:\n", why)
	named := names(reports)
	var rows [][]string
	for _, r := range reports {
		row := []string{named[r.Addr], r.Addr, "", "", "", "", string(r.Outcome)}
		if s := r.Status; s != nil {
			row[0], row[2], row[3], row[4], row[5] = s.Name, s.Instance, s.Zone, s.Version, part(s)
		}
		rows = append(rows, row)
	}
	return c.table("NAME ADDRESS INSTANCE ZONE VERSION PART ANSWER", rows)
}

func names(reports []guest.Report) map[string]string {
	named := map[string]string{}
	for _, r := range reports {
		if r.Status == nil {
			continue
		}
		for _, m := range r.Status.Voters {
			if m.Name != "" && m.Address != "" {
				named[m.Address] = m.Name
			}
		}
		named[r.Addr] = cmp.Or(r.Status.Name, named[r.Addr])
	}
	return named
}
