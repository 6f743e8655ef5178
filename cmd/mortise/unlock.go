package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type unlockOptions struct {
	force  bool
	all    bool
	token  uint64
	reason string
}

func unlockFlags(o *unlockOptions, fs *flag.FlagSet) {
	fs.BoolVar(&o.force, "force", false,
		"required: the holder may still be working, and then only the token protects the resource")
	fs.Func("token", "token of the hold to end, as get shows it", func(v string) (err error) {
		o.token, err = strconv.ParseUint(v, 10, 64)
		return err
	})
	fs.BoolVar(&o.all, "all", false,
		"instead of --token: end every hold of the keys that begin with KEY, also holds that begin meanwhile")
	fs.StringVar(&o.reason, "reason", "", "the reason, which the holder and the leader's log are given")
}

// endedShown is a hold that a command has ended, or has not found.
type endedShown struct {
	Key   string
	Token mortise.Token
	Ended bool
}

func checkReason(reason string) error {
	switch {
	case reason == "":
		return usageError("--reason is missing: give one for the audit log and the leader's log")
	case !plain.Is(reason):
		return usageError("--reason contains control characters, or marks that change the direction of writing")
	}
	return nil
}

func unlock(ctx context.Context, c *call, o unlockOptions) error {
	key, err := c.unlockKey(o.all)
	switch {
	case err != nil:
		return err
	case !o.force:
		return usageError("--force is missing: this ends a hold of another process")
	case o.token == 0 && !o.all:
		return usageError("--token is missing: mortise get " + plain.Shell(key) +
			" shows it; it ensures that no later hold is ended")
	case o.token != 0 && o.all:
		return usageError("--all ends every hold, and --token names one: give one of them")
	}
	if err := checkReason(o.reason); err != nil {
		return err
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	if o.all {
		return c.unlockAll(ctx, g, key, o.reason)
	}
	ended, err := c.evict(ctx, g, key, mortise.Token(o.token), o.reason)
	if err == nil && !ended {
		err = &exitError{code: exitNo}
	}
	return err
}

func (c *call) unlockKey(all bool) (string, error) {
	if all && len(c.words) == 1 {
		return c.words[0], nil // an empty prefix means all keys
	}
	return c.key()
}

// evict ends one hold, and prints whether there was such a hold.
func (c *call) evict(ctx context.Context, g *guest.Guest, key string, token mortise.Token, reason string) (ended bool,
	err error) {
	a, err := put(ctx, c, g, query.AdminClient.Evict, &query.EvictRequest{
		Key: []byte(key), Token: uint64(token), By: []byte("mortise unlock by " + myself()),
		Reason: []byte(reason),
	})
	switch {
	case err != nil:
		return false, err
	case c.json:
		err = c.show(endedShown{key, token, a.Held})
	case a.Held:
		err = c.printf("%s: the hold with token %d has ended\n", key, token)
	default:
		err = c.printf("%s: it is no longer held with token %d; nothing was ended\n", key, token)
	}
	return a.Held, err
}

// unlockAll ends every hold of the keys that begin with prefix. After an error, the error names how
// many holds have ended.
func (c *call) unlockAll(ctx context.Context, g *guest.Guest, prefix, reason string) error {
	ended := 0
	var failed error
	err := c.walk(ctx, g, prefix, func(k mortise.KeyInfo) bool {
		var n int
		n, failed = c.unlockHolds(ctx, g, k, reason)
		ended += n
		return failed == nil
	})
	switch err = cmpErr(failed, err); {
	case err != nil:
		return fmt.Errorf("%w (%d holds have ended; repeat the command for the others)", err, ended)
	case ended == 0:
		if !c.json {
			c.printf("no key that begins with %q is held; nothing was ended\n", prefix)
		}
		return &exitError{code: exitNo}
	case !c.json:
		c.printf("%d holds have ended\n", ended)
	}
	return nil
}

// unlockHolds ends the holds of one key. The queue of k may omit some of them, and then it asks for
// the queue again.
func (c *call) unlockHolds(ctx context.Context, g *guest.Guest, k mortise.KeyInfo, reason string) (ended int,
	err error) {
	for {
		shown := 0
		for _, s := range k.Queue {
			if s.Token == 0 {
				continue
			}
			shown++
			one, err := c.evict(ctx, g, k.Key, s.Token, reason)
			if err != nil {
				return ended, err
			}
			if one {
				ended++
			}
		}
		if shown >= k.Held {
			return ended, nil
		}
		if k, err = c.peek(ctx, g, k.Key); err != nil {
			return ended, err
		}
	}
}
