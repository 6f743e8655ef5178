package main

import (
	"context"
	"flag"
	"strconv"

	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type sessionOptions struct{ reason string }

func sessionFlags(o *sessionOptions, fs *flag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "", "the reason, which the audit log and the leader's log are given")
}

// sessionEnded is a session that a command has ended, or has not found.
type sessionEnded struct {
	Session string
	Ended   bool
}

func endSession(ctx context.Context, c *call, o sessionOptions) error {
	if len(c.words) != 2 || c.words[0] != "end" {
		return usageError("give end and the ID of a session, as mortise sessions shows it")
	}
	id, err := strconv.ParseUint(c.words[1], 10, 64)
	if err != nil || id == 0 {
		return usageError(plain.Shell(c.words[1]) + " is no ID of a session: mortise sessions shows them")
	}
	if err := checkReason(o.reason); err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	a, err := put(ctx, c, g, query.AdminClient.EndSession, &query.EndSessionRequest{
		Session: id, By: []byte("mortise session by " + myself()), Reason: []byte(o.reason),
	})
	switch {
	case err != nil:
		return err
	case c.json:
		err = c.show(sessionEnded{c.words[1], a.Held})
	case a.Held:
		err = c.printf("session %s has ended; its locks are free, or stay for their lock delay\n", c.words[1])
	default:
		err = c.printf("session %s does not exist, or had expired before; nothing was ended\n", c.words[1])
	}
	if err == nil && !a.Held {
		err = &exitError{code: exitNo}
	}
	return err
}
