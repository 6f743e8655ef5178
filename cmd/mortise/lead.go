package main

import (
	"context"
	"flag"

	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type leadOptions struct{ reason string }

func leadFlags(o *leadOptions, fs *flag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "", "the reason, which the audit log and the leader's log are given")
}

// leadMoved is the outcome of a move of the lead.
type leadMoved struct {
	Leader string
	Moved  bool   // false if it led before
	From   string // the instance that led before
}

func lead(ctx context.Context, c *call, o leadOptions) error {
	if len(c.words) != 1 || c.words[0] == "" {
		return usageError("give the name of a voter, as mortise status shows it")
	}
	if err := checkReason(o.reason); err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	a, err := put(ctx, c, g, query.AdminClient.TransferLead, &query.TransferLeadRequest{
		Name: []byte(c.words[0]), By: []byte("mortise lead by " + myself()), Reason: []byte(o.reason),
	})
	if err != nil {
		return err
	}
	moved := string(a.From) != c.words[0]
	switch {
	case c.json:
		return c.show(leadMoved{c.words[0], moved, string(a.From)})
	case moved:
		return c.printf("%s leads now; %s led before\n", c.words[0], a.From)
	}
	return c.printf("%s leads already; nothing was moved\n", c.words[0])
}
