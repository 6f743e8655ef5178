package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

type dataOptions struct{ revision *uint64 } // nil means the present revision

func dataFlags(o *dataOptions, fs *flag.FlagSet) {
	fs.Func("revision", "for put and rm: change the data only if it is still at this revision, which data get -o json "+
		"shows; "+
		"0 means only if there is none; without the flag the present revision is read first", func(v string) error {
		at, err := strconv.ParseUint(v, 10, 64)
		o.revision = &at
		return err
	})
}

func data(ctx context.Context, c *call, o dataOptions) error {
	verb, key, text, err := c.dataWords()
	if err != nil {
		return err
	}
	if verb == "get" && o.revision != nil {
		return usageError("-revision belongs to data put and data rm")
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	if verb == "get" {
		return c.getData(ctx, g, key)
	}
	return c.putData(ctx, g, key, text, o.revision)
}

// dataWords parses the words. If DATA is missing or "-", it reads the data from standard input.
func (c *call) dataWords() (verb, key string, text []byte, err error) {
	words := c.words
	if len(words) < 2 {
		return "", "", nil, usageError("say what to do: mortise data get KEY, data put KEY [DATA], or data rm KEY")
	}
	verb, key, words = words[0], words[1], words[2:]
	switch {
	case verb != "get" && verb != "put" && verb != "rm":
		return "", "", nil, usageError("data takes get, put or rm, not " + plain.Shell(verb))
	case key == "":
		return "", "", nil, usageError("the key is empty")
	case len(words) > 1 || verb != "put" && len(words) > 0:
		return "", "", nil, usageError("too many words for data " + verb)
	case verb != "put":
		return verb, key, nil, nil
	case len(words) == 1 && words[0] != "-":
		text = []byte(words[0])
	default:
		if text, err = io.ReadAll(io.LimitReader(os.Stdin, lockfsm.MaxDataBytes+1)); err != nil {
			return "", "", nil, err
		}
	}
	switch {
	case len(text) == 0:
		err = usageError("the data is empty: mortise data rm KEY deletes data")
	case len(text) > lockfsm.MaxDataBytes:
		err = usageError(fmt.Sprintf("the data has more than %d bytes", lockfsm.MaxDataBytes))
	}
	return verb, key, text, err
}

// getData prints the data of a key. It escapes unprintable characters only if the output is a
// terminal.
func (c *call) getData(ctx context.Context, g *guest.Guest, key string) error {
	k, err := c.peek(ctx, g, key)
	switch {
	case err != nil:
		return err
	case c.json:
		err = c.show(dataShown{Key: key, Revision: k.Revision, Data: k.Data})
	case isTerminal(c.out):
		err = c.printf("%s\n", string(k.Data))
	default:
		_, err = c.out.Write(k.Data)
	}
	if err == nil && k.Revision == 0 {
		err = &exitError{exitNo, plain.Text(key) + " has no data"}
	}
	return err
}

// putData changes the data of a key, or deletes the data if text is empty. All attempts contain the
// same nonce, so that the change takes effect only once even if a reply is lost.
func (c *call) putData(ctx context.Context, g *guest.Guest, key string, text []byte, revision *uint64) error {
	q := &query.PutRequest{Key: []byte(key), Data: text, Nonce: make([]byte, 16)}
	_, _ = rand.Read(q.Nonce)
	if revision != nil {
		q.Revision = *revision
	} else {
		k, err := c.peek(ctx, g, key)
		if err != nil {
			return err
		}
		q.Revision = k.Revision
	}
	a, err := put(ctx, c, g, query.AdminClient.Put, q)
	if failed, ok := errors.AsType[*queries.Failed](err); ok && failed.Kind == query.Failure_CONFLICT {
		return &exitError{exitNo, err.Error() + "; nothing was changed"}
	}
	if err != nil {
		return err
	}
	if c.json {
		return c.show(dataShown{Key: key, Revision: a.Revision, Data: text})
	}
	if a.Revision == 0 {
		return c.printf("%s has no data now\n", key)
	}
	return c.printf("%s: %d bytes at revision %d\n", key, len(text), a.Revision)
}
